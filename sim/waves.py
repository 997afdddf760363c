"""Sizes of the waveforms of regressions."""

import re
from functools import cache

from axs6.hw.registry import find
from axs6.hw.verilog import Generated
from axs6.sim.bench.configuration import stalled_items

ITEM_BITS = 10
"""Bits of signals that take about a byte of a file for each item."""

_MODULE = re.compile(r"^module (\S+?) ?\((.*?)^endmodule", re.M | re.S)
_SIGNAL = re.compile(r"^  (?:wire|reg) (?:\[(\d+):0\] )?", re.M)
_INSTANCE = re.compile(r"^  (\S+) +\S+ +\($", re.M)


def wave_size(generated: Generated, items: int, test: str | None = None) -> int:
    """Bytes that the waveforms of a regression will take, to an order of magnitude.

    Args:
        generated: the unit.
        items: random items at full rate.
        test: the one test that is run; all of them if None.
    """
    unit, parameters = generated.manifest["unit"], generated.manifest["parameters"]
    corners = find(unit).corners(parameters)
    counts = {
        "corners": len(next(iter(corners.values()))),
        "full_rate": items,
        "random_stalls": stalled_items(items),
    }
    sent = sum(counts.values()) if test is None else counts.get(test, 0)
    return sent * signal_bits(generated) // ITEM_BITS


def signal_bits(generated: Generated) -> int:
    """Bits of all signals of a unit, those of every instance of a module counted."""
    modules = dict(_MODULE.findall(generated.verilog))

    @cache
    def bits(module: str) -> int:
        own = sum(int(last or 0) + 1 for last in _SIGNAL.findall(modules[module]))
        inner = _INSTANCE.findall(modules[module])
        return own + sum(bits(each) for each in inner if each in modules)

    return bits(generated.module)
