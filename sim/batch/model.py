"""The C++ of a whole model: state, ports, one step, and how arrays reach the ports."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from axs6.hw.layouts import Field
from axs6.sim.batch.emit import Emitter, Function
from axs6.sim.batch.function import NOINLINE, block, function, stored
from axs6.sim.batch.netlist import Netlist, Operand, Register, Word
from axs6.sim.batch.parts import STEP_ARGUMENTS, PartEmitter
from axs6.sim.batch.schedule import Group, schedule
from axs6.sim.batch.values import Value, constant, element_bits, unsigned

RUNTIME = ("vectors.hpp", "masks.hpp", "fields.hpp", "stream.hpp", "activity.hpp")
SOURCES = Path(__file__).parent

CONTROL_INPUTS = ("i__valid", "o__ready", "rst")
CONTROL_OUTPUTS = ("i__ready", "o__valid")
INPUT, OUTPUT = "i__payload", "o__payload"
NETS = "activity"
"""Output port whose bits are the nets of a netlist whose changes are counted."""


def model_source(netlist: Netlist, inputs: Sequence[Field], outputs: Sequence[Field]) -> str:
    """C++ of a stream unit, complete: it includes the runtime beside this module.

    Args:
        netlist: of the unit, its payload ports cut at `inputs` and `outputs`.
        inputs, outputs: fields of the payloads; each is an array of V, one for each element.

    A netlist with a port `NETS` becomes a model whose changes are counted, in place of one for
    streams.

    Raises:
        NetlistError: a cell has no vector form.
    """
    functions: dict[Netlist, Function] = {}
    for index, inner in enumerate(netlist.functions):
        functions[inner] = function(inner, f"f{index}", functions)
    watched = NETS in netlist.outputs
    emitter = (PartEmitter if watched else Emitter)(_sources(netlist, inputs), functions)
    lines = _step(emitter, netlist, outputs)
    members, parts = [], []
    if isinstance(emitter, PartEmitter):
        members = [f"V<1> w[{emitter.stored}], nets[{len(netlist.outputs[NETS])}];"]
        parts = emitter.parts
    texts = [
        '#include "fields.hpp"',
        *(each.text for each in functions.values()),
        _struct("State", [_register_member(i, r) for i, r in enumerate(netlist.registers)]),
        _struct("In", [f"V<1> {n};" for n in CONTROL_INPUTS] + ["bool beyond;"] + _members(inputs)),
        _struct("Out", [f"V<1> {n};" for n in CONTROL_OUTPUTS] + _members(outputs) + members),
        block("static void reset(State& s)", _initials(netlist.registers)),
        *parts,
        block(f"static {NOINLINE} void step({STEP_ARGUMENTS})", lines),
        block(
            "static inline void load(In& in, const void* const* arrays, "
            "const int32_t* const* index, const Rows& rows)",
            [*_moves("load", "in", inputs, "Chosen(index[{}], rows).rows"), *_checks(inputs)],
        ),
        block(
            "static inline void store(const Out& out, void* const* arrays, const Rows& rows)",
            _moves("store", "out", outputs, "rows"),
        ),
        f'#include "{"activity" if watched else "stream"}.hpp"',
    ]
    return "\n".join(texts) + "\n"


def array_bits(width: int) -> int:
    """Bits of an array's element that holds `width` bits."""
    return max(8, element_bits(width))


def _sources(netlist: Netlist, inputs: Sequence[Field]) -> dict[Word, Value]:
    """Where the words that no cell drives are found."""
    values: dict[Word, Value] = {}
    for name in CONTROL_INPUTS:
        for word in netlist.inputs.get(name, []):
            values[word] = Value(f"in.{name}", 1, 0, 1)
    elements = [f"in.f{f}[{e}]" for f, field in enumerate(inputs) for e in range(field.count)]
    for word, text in zip(netlist.inputs[INPUT], elements, strict=True):
        values[word] = Value(text, array_bits(word.width), 0, (1 << word.width) - 1)
    for index, register in enumerate(netlist.registers):
        values[register.output] = stored(f"s.r{index}", register.output.width)
    return values


def _step(emitter: Emitter, netlist: Netlist, outputs: Sequence[Field]) -> list[str]:
    """One clock cycle: outputs and the registers' next values first, then the registers."""
    number = {register: index for index, register in enumerate(netlist.registers)}
    always, *guarded = schedule(netlist, OUTPUT, "o__valid")
    commits = _group(emitter, always, number, netlist, outputs)
    for name in CONTROL_OUTPUTS:
        emitter.lines.append(f"out.{name} = {emitter.truth(netlist.outputs[name][0]).text};")
    for index, group in enumerate(guarded):
        assert group.guard is not None
        active = _active(emitter, group.guard.operand, group.guard.high)
        emitter.lines.append(f"const bool g{index} = any_true({active});")
        emitter.lines += [
            f"V<{element_bits(register.output.width)}> n{number[register]};"
            for register in group.registers
        ]
        emitter.lines.append(f"if (g{index}) {{")
        with emitter.scope():
            inner = _group(emitter, group, number, netlist, outputs)
        emitter.lines.append("}")
        commits += [f"if (g{index}) {{", *inner, "}"] if inner else []
    return emitter.lines + commits


def _group(
    emitter: Emitter,
    group: Group,
    number: Mapping[Register, int],
    netlist: Netlist,
    outputs: Sequence[Field],
) -> list[str]:
    """Add a group's cells, payload and next values; return the statements that keep those."""
    for cell in group.cells:
        emitter.add(cell)
    if group.guard is None:
        for index, net in enumerate(netlist.outputs.get(NETS, [])):
            emitter.state(f"out.nets[{index}] = {emitter.truth(net).text};")
    if group.outputs:
        emitter.lines += _results(emitter, netlist.outputs[OUTPUT], outputs)
    for register in group.registers:
        index = number[register]
        declared = "" if group.guard else f"V<{element_bits(register.output.width)}> "
        emitter.lines.append(f"{declared}n{index} = {_next(emitter, index, register)};")
    return [f"s.r{number[register]} = n{number[register]};" for register in group.registers]


def runtime() -> Mapping[str, str]:
    """Texts of the header files that every model includes, by name."""
    return {name: (SOURCES / name).read_text() for name in RUNTIME}


def _register_member(index: int, register: Register) -> str:
    return f"V<{element_bits(register.output.width)}> r{index};"


def _members(fields: Sequence[Field]) -> list[str]:
    return [
        f"V<{array_bits(field.width)}> f{index}[{field.count}];"
        for index, field in enumerate(fields)
    ]


def _struct(name: str, members: Sequence[str]) -> str:
    return "\n".join([f"struct {name} {{", *(f"  {member}" for member in members), "};"])


def _initials(registers: Sequence[Register]) -> list[str]:
    lines = []
    for index, register in enumerate(registers):
        bits = element_bits(register.output.width)
        lines.append(f"s.r{index} = {constant(register.initial, bits).text};")
    return lines


def _results(
    emitter: Emitter, payload: Sequence[Operand], outputs: Sequence[Field]
) -> Iterator[str]:
    elements = [(f, e, fd) for f, fd in enumerate(outputs) for e in range(fd.count)]
    for (f, e, field), operand in zip(elements, payload, strict=True):
        value = emitter.extended(operand, array_bits(field.width), field.signed)
        yield f"out.f{f}[{e}] = {value.text};"


def _next(emitter: Emitter, index: int, register: Register) -> str:
    width = register.output.width
    bits = element_bits(width)
    text = unsigned(emitter.modular(register.data, bits), width).text
    enable = None
    if register.enable is not None:
        enable = _active(emitter, register.enable, register.enable_high)
        text = f"select({enable}, s.r{index}, {text})"
    if register.reset is not None:
        reset = _active(emitter, register.reset, register.reset_high)
        if register.reset_needs_enable and enable is not None:
            reset = f"both({reset}, {enable})"
        text = f"select({reset}, {text}, {constant(register.reset_value, bits).text})"
    return text


def _active(emitter: Emitter, operand: Operand, high: bool) -> str:
    text = emitter.truth(operand).text
    return text if high else f"invert({text})"


def _moves(verb: str, struct: str, fields: Sequence[Field], rows: str) -> list[str]:
    return [
        f"{verb}_field<{array_bits(field.width)}, {field.count}>"
        f"({struct}.f{index}, arrays[{index}], {rows.format(index)});"
        for index, field in enumerate(fields)
    ]


def _checks(inputs: Sequence[Field]) -> Iterator[str]:
    """Values that do not fit their fields are seen while they are at hand, and told in the end."""
    for index, field in enumerate(inputs):
        bits = array_bits(field.width)
        if field.width < bits:
            yield f"in.beyond |= beyond<{bits}, {field.count}, {field.width}>(in.f{index});"
