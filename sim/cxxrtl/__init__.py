"""The reference simulator: one copy of a design, through Yosys's CXXRTL."""

from axs6.sim.cxxrtl.engine import CxxrtlModel, CxxrtlRun

__all__ = ["CxxrtlModel", "CxxrtlRun"]
