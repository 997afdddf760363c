"""Encoders: floating-point values become blocks."""
