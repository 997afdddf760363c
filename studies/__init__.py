"""Studies: the effect of block formats on whole models, and of rounding on means."""
