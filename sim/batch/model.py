"""The C++ of a whole model: state, ports, one step, and how arrays reach the ports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from axs6.hw.layouts import Field
from axs6.sim.batch.emit import Emitter, Value, element_bits, unsigned
from axs6.sim.batch.netlist import Netlist, Operand, Register, Word

RUNTIME = ("vectors.hpp", "fields.hpp", "stream.hpp")
SOURCES = Path(__file__).parent

NOINLINE = "__attribute__((noinline))"
"""A step is compiled once, not into every loop that calls it."""

CONTROL_INPUTS = ("i__valid", "o__ready", "rst")
CONTROL_OUTPUTS = ("i__ready", "o__valid")
INPUT, OUTPUT = "i__payload", "o__payload"


def model_source(netlist: Netlist, inputs: Sequence[Field], outputs: Sequence[Field]) -> str:
    """C++ of a stream unit, complete: it includes the runtime beside this module.

    Args:
        netlist: of the unit, its payload ports cut at `inputs` and `outputs`.
        inputs, outputs: fields of the payloads; each is an array of V, one for each element.

    Raises:
        NetlistError: a cell has no vector form.
    """
    values: dict[Word, Value] = {}
    for name in CONTROL_INPUTS:
        for word in netlist.inputs.get(name, []):
            values[word] = Value(f"in.{name}", 8, -1, 0)
    elements = [f"in.f{f}[{e}]" for f, field in enumerate(inputs) for e in range(field.count or 1)]
    for word, text in zip(netlist.inputs[INPUT], elements, strict=True):
        values[word] = _stored(text, word.width)
    for index, register in enumerate(netlist.registers):
        values[register.output] = _kept(f"s.r{index}", register.output.width)
    emitter = Emitter(values)
    for cell in netlist.cells:
        emitter.cell(cell)
    body = emitter.lines
    body += _results(emitter, netlist, outputs)
    body += _updates(emitter, netlist.registers)
    parts = [
        '#include "fields.hpp"',
        _struct("State", [_register_member(i, r) for i, r in enumerate(netlist.registers)]),
        _struct("In", [f"V<8> {n};" for n in CONTROL_INPUTS] + _members(inputs)),
        _struct("Out", [f"V<8> {n};" for n in CONTROL_OUTPUTS] + _members(outputs)),
        _function("void reset(State& s)", _initials(netlist.registers)),
        _function(f"{NOINLINE} void step(State& s, const In& in, Out& out)", body),
        _function(
            "inline void load(In& in, const void* const* arrays, const int64_t* row)",
            _moves("load", "in", inputs),
        ),
        _function(
            "inline void store(const Out& out, void* const* arrays, const int64_t* row)",
            _moves("store", "out", outputs),
        ),
        '#include "stream.hpp"',
    ]
    return "\n".join(parts) + "\n"


def runtime() -> Mapping[str, str]:
    """Texts of the header files that every model includes, by name."""
    return {name: (SOURCES / name).read_text() for name in RUNTIME}


def _stored(text: str, width: int) -> Value:
    """A field element in the elements of its NumPy array."""
    return Value(text, element_bits(width), 0, (1 << width) - 1)


def _kept(text: str, width: int) -> Value:
    """A register: one bit is kept as 0 and -1, more as an unsigned value."""
    return Value(text, 8, -1, 0) if width == 1 else _stored(text, width)


def _register_member(index: int, register: Register) -> str:
    return f"V<{element_bits(register.output.width)}> r{index};"


def _members(fields: Sequence[Field]) -> list[str]:
    return [
        f"V<{element_bits(field.width)}> f{index}[{field.count or 1}];"
        for index, field in enumerate(fields)
    ]


def _struct(name: str, members: Sequence[str]) -> str:
    return "\n".join([f"struct {name} {{", *(f"  {member}" for member in members), "};"])


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"static {head} {{", *(f"  {line}" for line in lines), "}"])


def _initials(registers: Sequence[Register]) -> list[str]:
    lines = []
    for index, register in enumerate(registers):
        bits = element_bits(register.output.width)
        lines.append(f"s.r{index} = splat<{bits}>({_literal(register.initial, register, bits)});")
    return lines


def _literal(value: int, register: Register, bits: int) -> str:
    kept = -value if register.output.width == 1 else value
    return f"{kept & (1 << bits) - 1}u" + "ll" * (bits > 32)


def _results(emitter: Emitter, netlist: Netlist, outputs: Sequence[Field]) -> list[str]:
    lines = [
        f"out.{name} = {emitter.truth(netlist.outputs[name][0]).text};" for name in CONTROL_OUTPUTS
    ]
    elements = [(f, e, fd) for f, fd in enumerate(outputs) for e in range(fd.count or 1)]
    for (f, e, field), operand in zip(elements, netlist.outputs[OUTPUT], strict=True):
        bits = element_bits(field.width)
        value = emitter.extended(operand, bits, False)
        lines.append(f"out.f{f}[{e}] = {value.text};")
    return lines


def _updates(emitter: Emitter, registers: Sequence[Register]) -> list[str]:
    """Next values of all registers, then the registers themselves."""
    lines = []
    for index, register in enumerate(registers):
        lines.append(f"const auto n{index} = {_next(emitter, index, register)};")
    return lines + [f"s.r{index} = n{index};" for index in range(len(registers))]


def _next(emitter: Emitter, index: int, register: Register) -> str:
    width = register.output.width
    bits = element_bits(width)
    data = emitter.modular(register.data, bits)
    text = data.text if width == 1 else unsigned(data, width).text
    enable = None
    if register.enable is not None:
        enable = _active(emitter, register.enable, register.enable_high)
        text = f"select({enable}, s.r{index}, {text})"
    if register.reset is not None:
        reset = _active(emitter, register.reset, register.reset_high)
        if register.reset_needs_enable and enable is not None:
            reset = f"both({reset}, {enable})"
        value = f"splat<{bits}>({_literal(register.reset_value, register, bits)})"
        text = f"select({reset}, {text}, {value})"
    return text


def _active(emitter: Emitter, operand: Operand, high: bool) -> str:
    text = emitter.truth(operand).text
    return text if high else f"invert({text})"


def _moves(verb: str, struct: str, fields: Sequence[Field]) -> list[str]:
    return [
        f"{verb}_field<{element_bits(field.width)}, {field.count or 1}>"
        f"({struct}.f{index}, arrays[{index}], row);"
        for index, field in enumerate(fields)
    ]
