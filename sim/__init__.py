"""Running the units: benches in Verilog simulators, and arrays through simulated hardware."""

from axs6.sim.simulate import Simulated, simulate

__all__ = ["Simulated", "simulate"]
