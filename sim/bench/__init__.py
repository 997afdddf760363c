"""Code that runs inside a Verilog simulator: cocotb tests and their parts."""
