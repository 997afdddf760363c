"""What runs inside a Verilog simulator: cocotb tests, and the parts they are made of."""
