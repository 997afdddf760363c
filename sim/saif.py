"""SAIF: how often each net of a design toggles and how long it is 1, for tools of power."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version


@dataclass(frozen=True)
class Switching:
    """A net over a number of cycles: its toggles, and the cycles in which it was 1."""

    toggles: int
    ones: float


@dataclass
class SaifInstance:
    """An instance: its nets by name, an element of a bus as `NAME[3]`, and instances within."""

    name: str
    nets: dict[str, Switching] = field(default_factory=dict)
    scopes: dict[str, "SaifInstance"] = field(default_factory=dict)

    def within(self, path: tuple[str, ...]) -> "SaifInstance":
        """The scope at a path of instances' names, made where there is none."""
        scope = self
        for name in path:
            scope = scope.scopes.setdefault(name, SaifInstance(name))
        return scope


def clock_net(cycles: int) -> Switching:
    """The net of the clock itself: two toggles a cycle, and 1 for half of each."""
    return Switching(2 * cycles, cycles / 2)


def saif(top: SaifInstance, cycles: int, period: float, design: str) -> str:
    """A backward SAIF file, with T0 and T1 in picoseconds; a net is never X.

    Args:
        top: the design, with its nets.
        cycles: that the counts are of.
        period: of the clock, in picoseconds.
        design: what was simulated, on what, for readers: printable ASCII without quotes.

    Source: SAIF 2.0, IEEE 1801-2013 annex I.
    """
    duration = round(cycles * period)
    lines = [
        "(SAIFILE",
        '(SAIFVERSION "2.0")',
        '(DIRECTION "backward")',
        f'(DESIGN "{design}")',
        '(VENDOR "AXS-6")',
        '(PROGRAM_NAME "axs6")',
        f'(VERSION "{version("axs6")}")',
        "(DIVIDER / )",
        "(TIMESCALE 1 ps)",
        f"(DURATION {duration})",
        *_instance(top, duration, period),
        ")",
        "",
    ]
    return "\n".join(lines)


def _instance(scope: SaifInstance, duration: int, period: float) -> Iterator[str]:
    yield f"(INSTANCE {_escaped(scope.name)}"
    if scope.nets:
        yield "(NET"
        yield from _nets(scope.nets, duration, period)
        yield ")"
    for inner in scope.scopes.values():
        yield from _instance(inner, duration, period)
    yield ")"


def _nets(nets: Mapping[str, Switching], duration: int, period: float) -> Iterator[str]:
    for name, net in nets.items():
        high = round(net.ones * period)
        yield (
            f"({_escaped(name)} (T0 {duration - high}) (T1 {high}) (TX 0) "
            f"(TC {net.toggles}) (IG 0))"
        )


def _escaped(name: str) -> str:
    return re.sub(r"([^A-Za-z0-9_])", r"\\\1", name)
