"""The exact model: every format by its definition, one value at a time, in fractions."""
