"""Sweeps: area and timing of units at every combination of parameters, in parallel and cached."""

from axs6.synth.sweep.points import Measured, Point, Result, Sweep
from axs6.synth.sweep.runner import sweep

__all__ = ["Measured", "Point", "Result", "Sweep", "sweep"]
