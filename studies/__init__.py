"""Studies: what AXS-6 does to the results of whole models, and rounding to the mean of values."""
