"""Inputs of the checks, at every border that a format names."""
