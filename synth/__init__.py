"""Costs of the hardware: Yosys in child processes, reports, and tables of them."""
