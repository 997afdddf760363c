"""Waveforms of regressions: their sizes, and the fields of payloads in them."""

import re
from functools import cache
from itertools import groupby

from axs6.hw.core.layouts import Field
from axs6.hw.registry import find
from axs6.hw.verilog import Generated, fields_of
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


def named_fields(generated: Generated) -> str:
    """A SystemVerilog module whose nets are the fields of a unit's payloads, bound to the unit.

    The fields lie in the scopes `fields.i.payload` and `fields.o.payload`; element 3 of an array is
    `NAME[3]`. Verilator takes it, Icarus has no `bind`.
    """
    module = generated.module
    streams = [each for each in generated.manifest["streams"] if "payload" in each]
    ports = ", ".join(f"input [{each['width'] - 1}:0] {each['payload']}" for each in streams)
    connected = ", ".join(f".{each['payload']}({each['payload']})" for each in streams)
    nets: list[str] = []
    for each in streams:
        nets += [f"if (1) begin : {each['name']}", "if (1) begin : payload"]
        for scope, fields in groupby(fields_of(each), _scope):
            scoped = [_net(field, each["payload"]) for field in fields]
            nets += [f"if (1) begin : {scope}", *scoped, "end"] if scope else scoped
        nets += ["end", "end"]
    lines = [f"module {module}_fields({ports});", *nets, "endmodule"]
    return "\n".join([*lines, f"bind {module} {module}_fields fields({connected});", ""])


def _scope(field: Field) -> str:
    return field.name.rpartition(".")[0]


def _net(field: Field, payload: str) -> str:
    dimensions = "".join(f"[{size - 1}:0]" for size in (*field.shape, field.width))
    name = field.name.rpartition(".")[2]
    return f"wire {dimensions} {name} = {payload}[{field.offset} +: {field.count * field.width}];"
