"""Dot products of blocks, of vectors of them, and tiles of those."""
