"""Enumeration: the simulated hardware against the golden model on every item of whole spaces."""
