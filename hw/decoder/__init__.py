"""Decoder and expander: blocks become floating-point values, packed ones dense."""
