"""Sweeps: what units take at every combination of their parameters, in parallel and cached."""

from axs6.synth.sweep.points import Measured, Point, Result, Sweep
from axs6.synth.sweep.runner import sweep

__all__ = ["Measured", "Point", "Result", "Sweep", "sweep"]
