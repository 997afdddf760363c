"""Designs that several tests look at: each is made once."""

from functools import cache

from axs6.hw.verilog import Generated, generate


@cache
def small(unit: str) -> Generated:
    """A unit with blocks of 8 and two ranks of registers."""
    return generate(unit, block=8, stages=2)
