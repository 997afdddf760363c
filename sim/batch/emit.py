"""C++ for a netlist: one vector expression for each cell, masked only where a width needs it.

A word is stored in elements of 8, 16, 32 or 64 bits whose low bits are the word's; what the bits
above hold is known by a range. So a sum whose exact value fits its element is never masked, and a
word is cleaned only for a consumer that reads the bits above.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from axs6.sim.batch.netlist import Call, Cell, Netlist, NetlistError, Operand, Piece, Word

SIZES = (8, 16, 32, 64)


def element_bits(width: int) -> int:
    """Bits of the smallest element that holds `width` bits."""
    return next(size for size in SIZES if size >= width)


@dataclass(frozen=True)
class Value:
    """A C++ expression of type V<bits>, and the range of its elements, signed if `low` < 0."""

    text: str
    bits: int
    low: int
    high: int

    def is_unsigned(self, width: int) -> bool:
        """Whether every element is the unsigned value of its low `width` bits."""
        return self.low >= 0 and self.high < 1 << width

    def is_signed(self, width: int) -> bool:
        """Whether every element is the signed value of its low `width` bits."""
        return self.low >= -(1 << width - 1) and self.high < 1 << width - 1


def fitted(text: str, bits: int, low: int, high: int) -> Value:
    """A value whose exact range is given; elements wrap where it does not fit them."""
    if low >= 0 and high < 1 << bits:
        return Value(text, bits, low, high)
    if low >= -(1 << bits - 1) and high < 1 << bits - 1:
        return Value(text, bits, low, high)
    return Value(text, bits, 0, (1 << bits) - 1)


def constant(value: int, bits: int) -> Value:
    """The same value in every element."""
    return Value(
        f"splat<{bits}>({value & (1 << bits) - 1}u{'ll' * (bits > 32)})", bits, value, value
    )


def resized(value: Value, bits: int) -> Value:
    """The value in elements of another size: extended as its range says, or truncated."""
    if bits == value.bits:
        return value
    if bits > value.bits:
        extend = "sext" if value.low < 0 else "zext"
        return Value(f"{extend}<{bits}>({value.text})", bits, value.low, value.high)
    return fitted(f"trunc<{bits}>({value.text})", bits, value.low, value.high)


def unsigned(value: Value, width: int) -> Value:
    """The unsigned value of the low `width` bits."""
    if value.is_unsigned(width):
        return value
    if width == value.bits:
        return Value(value.text, value.bits, 0, (1 << width) - 1)
    mask = constant((1 << width) - 1, value.bits)
    return Value(f"both({value.text}, {mask.text})", value.bits, 0, (1 << width) - 1)


def signed(value: Value, width: int) -> Value:
    """The signed value of the low `width` bits."""
    if value.is_signed(width):
        return value
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    if width == value.bits:
        return Value(value.text, value.bits, low, high)
    spare = value.bits - width
    return Value(f"sar(shl({value.text}, {spare}), {spare})", value.bits, low, high)


class Callee(Protocol):
    """A C++ function: its name, and the range of each of its results."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def results(self) -> Sequence[Value]:
        """Its results, in the order of the words that a call drives."""


class Emitter:
    """Writes the statements of a netlist.

    Args:
        values: where the words that no cell drives are found: inputs and registers.
        functions: what calls in the netlist call.
    """

    def __init__(self, values: Mapping[Word, Value], functions: Mapping[Netlist, "Callee"]) -> None:
        self._values = dict(values)
        self._functions = functions
        self.lines: list[str] = []

    def add(self, cell: Cell | Call) -> None:
        """Add the statements of a cell or a call.

        Raises:
            NetlistError: the cell's type has no vector form.
        """
        if isinstance(cell, Call):
            self._call(cell)
        else:
            self._cell(cell)

    def _call(self, call: Call) -> None:
        callee = self._functions[call.function]
        arguments = [self.word(operand).text for operand in call.operands]
        for word, result in zip(call.driven, callee.results, strict=True):
            name = f"w{len(self.lines)}"
            self.lines.append(f"V<{result.bits}> {name};")
            self._values[word] = Value(name, result.bits, result.low, result.high)
            arguments.append(name)
        self.lines.append(f"{callee.name}({', '.join(arguments)});")

    def _cell(self, cell: Cell) -> None:
        handler = HANDLERS.get(cell.kind)
        if handler is None:
            raise NetlistError(
                f"cell {cell.output.name} is a {cell.kind}, which has no vector form"
            )
        value = handler(self, cell)
        if cell.output.width > 1 and handler in ONE_BIT:
            value = unsigned(value, 1)
        self._values[cell.output] = self.named(value)

    def named(self, value: Value) -> Value:
        """The value as a variable."""
        name = f"w{len(self.lines)}"
        self.lines.append(f"const V<{value.bits}> {name} = {value.text};")
        return Value(name, value.bits, value.low, value.high)

    def piece(self, piece: Piece) -> Value:
        """The unsigned value of a piece, in elements as large as its word's."""
        if piece.word is None:
            return constant(piece.value, element_bits(piece.width))
        value = self._values[piece.word]
        if piece.offset:
            whole = unsigned(value, piece.word.width)
            text = f"shr({whole.text}, {piece.offset})"
            value = Value(text, whole.bits, whole.low >> piece.offset, whole.high >> piece.offset)
        return unsigned(value, piece.width)

    def modular(self, operand: Operand, bits: int) -> Value:
        """An operand whose low bits are right, whatever lies above them."""
        if bits == 8 and operand_width(operand) == 1:
            return self.truth(operand)
        if len(operand) == 1 and operand[0].word is not None and not operand[0].offset:
            return resized(self._values[operand[0].word], bits)
        return self.zero_extended(operand, bits)

    def zero_extended(self, operand: Operand, bits: int) -> Value:
        """An operand as an unsigned value, in elements of `bits`, which hold its width."""
        parts = []
        low = high = position = 0
        for piece in operand:
            if piece.word is not None or piece.value:
                part = resized(self.piece(piece), bits)
                low, high = low + (part.low << position), high + (part.high << position)
                parts.append(f"shl({part.text}, {position})" if position else part.text)
            position += piece.width
        if not parts:
            return constant(0, bits)
        text = parts[0]
        for part_text in parts[1:]:
            text = f"either({text}, {part_text})"
        return Value(text, bits, low, high)

    def extended(self, operand: Operand, bits: int, is_signed: bool) -> Value:
        """An operand extended to elements of `bits`."""
        width = operand_width(operand)
        if not is_signed:
            if len(operand) == 1 and operand[0].word is not None and not operand[0].offset:
                return resized(unsigned(self._values[operand[0].word], width), bits)
            return self.zero_extended(operand, bits)
        if len(operand) == 1 and operand[0].word is None:
            value = operand[0].value
            return constant(value - (value >> width - 1 << width), bits)
        return resized(signed(self.modular(operand, max(bits, element_bits(width))), width), bits)

    def word(self, operand: Operand) -> Value:
        """An operand as a function takes or gives it: a truth, or an unsigned value."""
        width = operand_width(operand)
        if width == 1:
            return self.truth(operand)
        return self.extended(operand, element_bits(width), False)

    def argument(self, cell: Cell, port: str, bits: int) -> Value:
        """Operand `port` of an arithmetic or bitwise cell, extended to the width of its output."""
        operand = cell.operands[port]
        if operand_width(operand) >= cell.output.width:
            return self.modular(operand, bits)
        return self.extended(operand, bits, signed_cell(cell))

    def truth(self, operand: Operand) -> Value:
        """Whether an operand is not 0, as 0 and -1 in elements of 8 bits."""
        found = []
        for piece in operand:
            if piece.word is None:
                if piece.value:
                    return constant(-1, 8)
                continue
            value = self._values[piece.word]
            if piece.word.width == 1 and value.bits == 8 and value.low >= -1 and value.high <= 0:
                found.append(value.text)
                continue
            value = self.piece(piece)
            if value.high <= 1 and value.bits == 8:
                found.append(f"sub(splat<8>(0u), {value.text})")
            else:
                found.append(f"invert(eq({value.text}, {constant(0, value.bits).text}))")
        return _combined("either", found) if found else constant(0, 8)

    def all_ones(self, operand: Operand) -> Value:
        """Whether every bit of an operand is 1, as 0 and -1."""
        found = []
        for piece in operand:
            full = (1 << piece.width) - 1
            if piece.word is None:
                if piece.value != full:
                    return constant(0, 8)
                continue
            if piece.width == 1:
                found.append(self.truth((piece,)).text)
            else:
                value = self.piece(piece)
                found.append(f"eq({value.text}, {constant(full, value.bits).text})")
        return _combined("both", found) if found else constant(-1, 8)


def _combined(operation: str, texts: Sequence[str]) -> Value:
    text = texts[0]
    for each in texts[1:]:
        text = f"{operation}({text}, {each})"
    return Value(text, 8, -1, 0)


def operand_width(operand: Operand) -> int:
    """Bits of an operand."""
    return sum(piece.width for piece in operand)


def signed_cell(cell: Cell) -> bool:
    """Whether a cell takes its operands as signed."""
    return cell.flag("A_SIGNED") and (cell.flag("B_SIGNED") or "B" not in cell.operands)


def _sum(emitter: Emitter, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a, b = (emitter.argument(cell, port, bits) for port in "AB")
    if cell.kind == "$add":
        return fitted(f"add({a.text}, {b.text})", bits, a.low + b.low, a.high + b.high)
    return fitted(f"sub({a.text}, {b.text})", bits, a.low - b.high, a.high - b.low)


def _negation(emitter: Emitter, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a = emitter.argument(cell, "A", bits)
    return fitted(f"sub({constant(0, bits).text}, {a.text})", bits, -a.high, -a.low)


def _product(emitter: Emitter, cell: Cell) -> Value:
    bits = max(16, element_bits(cell.output.width))  # processors multiply no bytes
    a, b = (emitter.argument(cell, port, bits) for port in "AB")
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return fitted(f"mul({a.text}, {b.text})", bits, min(ends), max(ends))


def _bitwise(emitter: Emitter, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a, b = (emitter.argument(cell, port, bits) for port in "AB")
    name = {"$and": "both", "$or": "either", "$xor": "differ", "$xnor": "differ"}[cell.kind]
    text = f"{name}({a.text}, {b.text})"
    if cell.kind == "$and" and (a.low >= 0 or b.low >= 0):
        low, high = 0, min(x.high for x in (a, b) if x.low >= 0)
    elif a.low >= 0 and b.low >= 0:
        low, high = 0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
    else:
        length = max((x if x >= 0 else ~x).bit_length() for v in (a, b) for x in (v.low, v.high))
        low, high = -(1 << length), (1 << length) - 1
    if cell.kind == "$xnor":
        return fitted(f"invert({text})", bits, ~high, ~low)
    return fitted(text, bits, low, high)


def _not(emitter: Emitter, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a = emitter.argument(cell, "A", bits)
    return fitted(f"invert({a.text})", bits, ~a.high, ~a.low)


def _mux(emitter: Emitter, cell: Cell) -> Value:
    width = cell.output.width
    bits = element_bits(width)
    chosen = [emitter.modular(cell.operands["A"], bits)]
    chosen += [emitter.modular(each, bits) for each in _alternatives(cell.operands["B"], width)]
    low, high = min(v.low for v in chosen), max(v.high for v in chosen)
    if low < 0 and high >= 1 << bits - 1:
        chosen = [unsigned(v, width) for v in chosen]
        low, high = 0, (1 << width) - 1
    text = chosen[0].text
    selects = [(piece,) for piece in _single_bits(cell.operands["S"])]
    for select, value in zip(selects, chosen[1:], strict=True):
        text = f"select({emitter.truth(select).text}, {text}, {value.text})"
    return Value(text, bits, low, high)


def _single_bits(operand: Operand) -> Iterator[Piece]:
    for piece in operand:
        for bit in range(piece.width):
            yield Piece(piece.word, piece.offset + bit, 1, piece.value >> bit & 1)


def _alternatives(operand: Operand, width: int) -> Iterator[Operand]:
    """The operands of `width` bits that make up operand B of a multiplexer."""
    current: list[Piece] = []
    room = width
    for piece in operand:
        offset = 0
        while offset < piece.width:
            take = min(room, piece.width - offset)
            mask = (1 << take) - 1
            current.append(
                Piece(piece.word, piece.offset + offset, take, piece.value >> offset & mask)
            )
            offset, room = offset + take, room - take
            if not room:
                yield tuple(current)
                current, room = [], width


def _comparison(emitter: Emitter, cell: Cell) -> Value:
    is_signed = signed_cell(cell)
    bits = element_bits(max(operand_width(cell.operands[port]) for port in "AB"))
    a, b = (emitter.extended(cell.operands[port], bits, is_signed) for port in "AB")
    if cell.kind in ("$eq", "$ne"):
        text = f"eq({a.text}, {b.text})"
        return Value(text if cell.kind == "$eq" else f"invert({text})", 8, -1, 0)
    if cell.kind in ("$gt", "$le"):
        a, b = b, a
    text = f"{'slt' if is_signed else 'lt'}({a.text}, {b.text})"
    return Value(text if cell.kind in ("$lt", "$gt") else f"invert({text})", 8, -1, 0)


def _shift(emitter: Emitter, cell: Cell) -> Value:
    """$shl, $shr, $sshl, $sshr and $shiftx; amounts are unsigned, and may exceed the width."""
    if cell.flag("B_SIGNED"):
        raise NetlistError(f"cell {cell.output.name}: a signed shift amount has no vector form")
    left = cell.kind in ("$shl", "$sshl")
    arithmetic = cell.kind == "$sshr" and cell.flag("A_SIGNED")
    width = max(cell.output.width, 0 if left else operand_width(cell.operands["A"]))
    amount_width = operand_width(cell.operands["B"])
    bits = max(element_bits(width), element_bits(amount_width), 16)  # no byte has its own amount
    if left:
        a = emitter.argument(cell, "A", bits)
    else:
        a = emitter.extended(cell.operands["A"], bits, cell.flag("A_SIGNED"))
        if not arithmetic:
            a = unsigned(a, width)
    b = emitter.extended(cell.operands["B"], bits, False)
    within = f"both({b.text}, {constant(bits - 1, bits).text})" if b.high >= bits else b.text
    name = "shl" if left else "sar" if arithmetic else "shr"
    text = f"{name}({a.text}, {within})"
    if b.high >= bits:
        beyond = f"sar({a.text}, {bits - 1})" if arithmetic else constant(0, bits).text
        text = f"select(lt({b.text}, {constant(bits, bits).text}), {beyond}, {text})"
    if left:
        shift = min(b.high, bits)
        return fitted(text, bits, min(a.low, 0) << shift, max(a.high, 0) << shift)
    return fitted(text, bits, min(a.low, 0), max(a.high, 0))


def _reduction(emitter: Emitter, cell: Cell) -> Value:
    operand = cell.operands["A"]
    if cell.kind == "$reduce_and":
        return emitter.all_ones(operand)
    truth = emitter.truth(operand)
    if cell.kind == "$logic_not":
        return Value(f"invert({truth.text})", 8, -1, 0)
    return truth


def _logic(emitter: Emitter, cell: Cell) -> Value:
    texts = [emitter.truth(cell.operands[port]).text for port in "AB"]
    return _combined("both" if cell.kind == "$logic_and" else "either", texts)


def _parity(emitter: Emitter, cell: Cell) -> Value:
    bits = element_bits(operand_width(cell.operands["A"]))
    value = emitter.named(emitter.zero_extended(cell.operands["A"], bits))
    shift = bits // 2
    while shift:
        value = emitter.named(
            Value(f"differ({value.text}, shr({value.text}, {shift}))", bits, 0, (1 << bits) - 1)
        )
        shift //= 2
    if cell.kind == "$reduce_xnor":
        value = Value(f"invert({value.text})", bits, 0, (1 << bits) - 1)
    return resized(unsigned(value, 1), 8)


HANDLERS: Mapping[str, Callable[[Emitter, Cell], Value]] = {
    **dict.fromkeys(("$add", "$sub"), _sum),
    "$neg": _negation,
    "$mul": _product,
    **dict.fromkeys(("$and", "$or", "$xor", "$xnor"), _bitwise),
    "$not": _not,
    **dict.fromkeys(("$mux", "$pmux"), _mux),
    **dict.fromkeys(("$eq", "$ne", "$lt", "$le", "$gt", "$ge"), _comparison),
    **dict.fromkeys(("$shl", "$shr", "$sshl", "$sshr", "$shiftx"), _shift),
    **dict.fromkeys(("$reduce_and", "$reduce_or", "$reduce_bool", "$logic_not"), _reduction),
    **dict.fromkeys(("$logic_and", "$logic_or"), _logic),
    **dict.fromkeys(("$reduce_xor", "$reduce_xnor"), _parity),
}
"""The cell types that have a vector form."""

ONE_BIT = (_comparison, _reduction, _logic, _parity)
"""Handlers whose result is one bit; the bits above it are 0 where the output is wider."""
