"""What the hardware costs: Yosys in child processes, reports, and tables of them."""
