"""Small models trained in block formats, with loss curves and tables."""
