"""Running the units: benches in Verilog simulators, and arrays through simulated hardware."""
