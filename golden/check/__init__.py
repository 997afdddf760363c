"""Checks of the golden model against the definitions of the formats."""
