"""The clock and the reset of a module: the names of their ports, and how the reset works."""

from dataclasses import dataclass
from typing import Final

from amaranth.hdl import ClockDomain, Fragment, Signal, Value


@dataclass(frozen=True)
class Clocking:
    """Ports of a module's clock and reset.

    Args:
        clock: name of the clock's port; registers take their values at its rising edge.
        reset: name of the reset's port.
        asynchronous: whether the reset works at once, not at the next rising edge.
        low: whether the reset works while its port is 0, not 1.
    """

    clock: str = "clk"
    reset: str = "rst"
    asynchronous: bool = False
    low: bool = False

    @property
    def kind(self) -> str:
        """How the reset works, as `RESETS` has it."""
        return f"{'a' * self.asynchronous}sync-{'low' if self.low else 'high'}"

    def ports(self, fragment: Fragment) -> dict[str, tuple[Value, None]]:
        """Add the clock domain to a module, and return the ports that drive it."""
        domain = ClockDomain("sync", async_reset=self.asynchronous)
        fragment.add_domains(domain)
        reset = domain.rst
        if self.low:
            reset = Signal(name=self.reset)
            fragment.add_statements("comb", domain.rst.eq(~reset))
        return {self.clock: (domain.clk, None), self.reset: (reset, None)}


USUAL: Final = Clocking()
"""The ports of the tools' own designs: `clk` and `rst`, synchronous and high."""

RESETS: Final = ("sync-high", "sync-low", "async-high", "async-low")
"""Kinds of resets."""


def clocking(reset: str, *, on_bus: bool) -> Clocking:
    """The ports of a unit whose reset is of a kind.

    They are `clk` and `rst`, or `rst_n` where 0 resets; on AXI4-Stream `aclk` and `aresetn` then,
    as its specification names them.

    Raises:
        ValueError: it is no kind of `RESETS`.

    Source: AMBA AXI-Stream Protocol Specification (IHI 0051B), clock and reset.
    """
    if reset not in RESETS:
        raise ValueError(f"reset must be one of {', '.join(RESETS)}, not {reset!r}")
    edge, _, level = reset.partition("-")
    low = level == "low"
    clock, port = ("aclk", "aresetn") if low and on_bus else ("clk", "rst_n" if low else "rst")
    return Clocking(clock, port, asynchronous=edge == "async", low=low)
