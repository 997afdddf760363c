"""The checks of the golden model: it is compared with the definitions of the formats."""
