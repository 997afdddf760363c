"""Hardware: Amaranth units, their registry, and the Verilog they become."""
