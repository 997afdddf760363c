"""The C++ of a whole model: state, ports, one step, and how arrays reach the ports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path

from axs6.hw.core.layouts import Field
from axs6.sim.batch.emit import Emitter, block, function
from axs6.sim.batch.logic import TRUE, Literal
from axs6.sim.batch.netlist import Netlist, Register
from axs6.sim.batch.schedule import GuardedOperations, schedule
from axs6.sim.compiled import element_type

RUNTIME = ("bits.hpp", "transpose.hpp", "fields.hpp", "stream.hpp", "activity.hpp")
SOURCES = Path(__file__).parent

CONTROL_INPUTS = ("i_valid", "o_ready")
CONTROL_OUTPUTS = ("i_ready", "o_valid")
INPUT, OUTPUT = "i_payload", "o_payload"
NETS = "activity"
"""Output port whose bits are the nets of a netlist whose changes are counted."""


def model_source(netlist: Netlist, inputs: Sequence[Field], outputs: Sequence[Field]) -> str:
    """C++ of a stream unit, complete: it includes the runtime beside this module.

    Args:
        netlist: of the unit.
        inputs, outputs: fields of the payloads, in whose order arrays are given.

    A netlist with a port `NETS` becomes a model whose changes are counted, in place of one for
    streams.
    """
    registers = sorted(netlist.registers, key=lambda each: each.enable)  # those of a group in a row
    netlist = replace(netlist, registers=registers)
    names = {inner: f"f{index}" for index, inner in enumerate(netlist.functions)}
    emitter = Emitter("step", {"m": "Model&", "w": "V*"}, _leaves(netlist), names)
    groups = step_groups(netlist)
    step = _step(emitter, groups, registers)
    nets = netlist.outputs.get(NETS, [])
    sizes = {
        "i": _width(inputs),
        "o": _width(outputs),
        "s": len(registers),
        "n": len(registers),
        "w": emitter.room,
        "g": len(groups),
    }
    arrays = ", ".join(f"{name}[{max(1, size)}]" for name, size in sizes.items())
    members = [
        f"V {', '.join((*CONTROL_INPUTS, *CONTROL_OUTPUTS))};",
        f"V {arrays};",
        *([f"V nets[{len(nets)}];"] if nets else []),
        "V beyond;  // bits of inputs beyond their fields",
        f"Ahead ahead[{len(inputs)}];",
    ]
    load = [
        f"m.ahead[{k}] = {_field(f)}::load(m.i + {f.offset}, arrays[{k}], "
        f"Chosen(index[{k}], rows).rows, m.beyond);"
        for k, f in enumerate(inputs)
    ]
    store = [
        f"{_field(f)}::store(m.o + {f.offset}, arrays[{k}], rows);" for k, f in enumerate(outputs)
    ]
    initials = [f"m.s[{k}] = ONES;" for k, r in enumerate(netlist.registers) if r.initial]
    load_parameters = (
        "Model& m, const void* const* arrays, const int32_t* const* index, const Rows& rows"
    )
    texts = [
        '#include "fields.hpp"',
        "\n".join(["struct Model {", *(f"  {member}" for member in members), "};"]),
        *(function(inner, name, names) for inner, name in names.items()),
        *emitter.texts,
        block("static void reset(Model& m)", ["memset((void*)&m, 0, sizeof m);", *initials]),
        block("NOINLINE void step(Model& m)", step),
        block(f"NOINLINE void load({load_parameters})", load),
        block("NOINLINE void store(const Model& m, void* const* arrays, const Rows& rows)", store),
        f'#include "{"activity" if nets else "stream"}.hpp"',
    ]
    return "\n".join(texts) + "\n"


def step_groups(netlist: Netlist) -> list[GuardedOperations]:
    """Operations of a step of a stream unit, with the variables of the model that it sets."""
    return schedule(netlist, _results(netlist))


def runtime() -> Mapping[str, str]:
    """Texts of the header files that every model includes, by name."""
    return {name: (SOURCES / name).read_text() for name in RUNTIME}


def _width(fields: Sequence[Field]) -> int:
    return max(field.offset + field.width * field.count for field in fields)


def _field(field: Field) -> str:
    signed = "true" if field.signed else "false"
    return f"Field<{8 * element_type(field).itemsize}, {field.width}, {field.count}, {signed}>"


def _leaves(netlist: Netlist) -> dict[Literal, str]:
    """Expressions of the bits that no operation drives."""
    leaves = {netlist.inputs[name][0]: f"m.{name}" for name in CONTROL_INPUTS}
    leaves |= {bit: f"m.i[{k}]" for k, bit in enumerate(netlist.inputs[INPUT])}
    return leaves | {each.output: f"m.s[{k}]" for k, each in enumerate(netlist.registers)}


def _step(
    emitter: Emitter, groups: Sequence[GuardedOperations], registers: Sequence[Register]
) -> list[str]:
    """One clock cycle: outputs and the registers' next values first, then the registers."""
    always, *guarded = groups
    always.results += [(f"m.g[{k}]", group.guard) for k, group in enumerate(guarded)]
    conditions = {group.guard: f"if (any(m.g[{k}])) " for k, group in enumerate(guarded)}
    lines = ["V* w = m.w;"]
    emitted = emitter.emit(groups)
    parts, number = sum(map(len, emitted)), count()
    for group, made in zip(groups, emitted, strict=True):
        condition = conditions.get(group.guard)
        calls = [f"{call} fetch(m.ahead, {next(number)}, {parts});" for call in made]
        lines += [condition + "{", *calls, "}"] if condition else calls
    first = 0
    for enable, run in groupby(registers, lambda each: each.enable):
        size = len(list(run))
        kept = f"memcpy(m.s + {first}, m.n + {first}, {size} * sizeof(V));"
        lines.append(conditions.get(enable, "") + kept)
        first += size
    return lines


def _results(netlist: Netlist) -> Iterator[tuple[str, Literal, Literal]]:
    (valid,) = netlist.outputs["o_valid"]
    for name in CONTROL_OUTPUTS:
        yield f"m.{name}", netlist.outputs[name][0], TRUE
    for k, bit in enumerate(netlist.outputs.get(NETS, [])):
        yield f"m.nets[{k}]", bit, TRUE
    for k, bit in enumerate(netlist.outputs[OUTPUT]):
        yield f"m.o[{k}]", bit, valid
    for k, register in enumerate(netlist.registers):
        yield f"m.n[{k}]", register.following, register.enable
