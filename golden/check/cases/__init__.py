"""Inputs of the checks, at every limit of a format."""
