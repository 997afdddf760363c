"""The vector form of each type of cell."""

from collections.abc import Callable, Iterator, Mapping

from axs6.sim.batch.bits import BIT
from axs6.sim.batch.netlist import Cell, NetlistError, Operand, Piece
from axs6.sim.batch.operands import Words, combined, operand_width, signed_cell
from axs6.sim.batch.values import Value, constant, element_bits, fitted, tested, unsigned


def _sum(words: Words, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a, b = (words.argument(cell, port, bits) for port in "AB")
    if cell.kind == "$add":
        return fitted(f"add({a.text}, {b.text})", bits, a.low + b.low, a.high + b.high)
    return fitted(f"sub({a.text}, {b.text})", bits, a.low - b.high, a.high - b.low)


def _negation(words: Words, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a = words.argument(cell, "A", bits)
    return fitted(f"sub({constant(0, bits).text}, {a.text})", bits, -a.high, -a.low)


def _product(words: Words, cell: Cell) -> Value:
    bits = max(16, element_bits(cell.output.width))  # processors multiply no bytes
    a, b = (words.argument(cell, port, bits) for port in "AB")
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return fitted(f"mul({a.text}, {b.text})", bits, min(ends), max(ends))


def _bitwise(words: Words, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a, b = (words.argument(cell, port, bits) for port in "AB")
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


def _not(words: Words, cell: Cell) -> Value:
    bits = element_bits(cell.output.width)
    a = words.argument(cell, "A", bits)
    return fitted(f"invert({a.text})", bits, ~a.high, ~a.low)


def _mux(words: Words, cell: Cell) -> Value:
    width = cell.output.width
    bits = element_bits(width)
    chosen = [words.modular(cell.operands["A"], bits)]
    chosen += [words.modular(each, bits) for each in _alternatives(cell.operands["B"], width)]
    low, high = min(v.low for v in chosen), max(v.high for v in chosen)
    if low < 0 and high >= 1 << bits - 1:
        chosen = [unsigned(v, width) for v in chosen]
        low, high = 0, (1 << width) - 1
    text = chosen[0].text
    selects = [(piece,) for piece in _single_bits(cell.operands["S"])]
    for select, value in zip(selects, chosen[1:], strict=True):
        text = f"select({words.truth(select).text}, {text}, {value.text})"
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


def _comparison(words: Words, cell: Cell) -> Value:
    is_signed = signed_cell(cell)
    bits = element_bits(max(operand_width(cell.operands[port]) for port in "AB"))
    a, b = (words.extended(cell.operands[port], bits, is_signed) for port in "AB")
    if cell.kind in ("$eq", "$ne"):
        text = f"eq({a.text}, {b.text})"
        return Value(text if cell.kind == "$eq" else f"invert({text})", 1, 0, 1)
    if cell.kind in ("$gt", "$le"):
        a, b = b, a
    text = f"{'slt' if is_signed else 'lt'}({a.text}, {b.text})"
    return Value(text if cell.kind in ("$lt", "$gt") else f"invert({text})", 1, 0, 1)


def _shift(words: Words, cell: Cell) -> Value:
    """$shl, $shr, $sshl, $sshr and $shiftx; amounts are unsigned, and may exceed the width."""
    if cell.flag("B_SIGNED"):
        raise NetlistError(f"cell {cell.output.name}: a signed shift amount has no vector form")
    left = cell.kind in ("$shl", "$sshl")
    arithmetic = cell.kind == "$sshr" and cell.flag("A_SIGNED")
    width = max(cell.output.width, 0 if left else operand_width(cell.operands["A"]))
    amount_width = operand_width(cell.operands["B"])
    bits = max(element_bits(width), element_bits(amount_width), 16)  # no byte has its own amount
    if left:
        a = words.argument(cell, "A", bits)
    else:
        a = words.extended(cell.operands["A"], bits, cell.flag("A_SIGNED"))
        if not arithmetic:
            a = unsigned(a, width)
    b = words.extended(cell.operands["B"], bits, False)
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


def _reduction(words: Words, cell: Cell) -> Value:
    operand = cell.operands["A"]
    if cell.kind == "$reduce_and":
        return words.all_ones(operand)
    truth = words.truth(operand)
    if cell.kind == "$logic_not":
        return Value(f"invert({truth.text})", 1, 0, 1)
    return truth


def _logic(words: Words, cell: Cell) -> Value:
    texts = [words.truth(cell.operands[port]).text for port in "AB"]
    return combined("both" if cell.kind == "$logic_and" else "either", texts)


def _parity(words: Words, cell: Cell) -> Value:
    bits = element_bits(operand_width(cell.operands["A"]))
    value = words.named(words.zero_extended(cell.operands["A"], bits))
    shift = bits // 2
    while shift:
        value = words.named(
            Value(f"differ({value.text}, shr({value.text}, {shift}))", bits, 0, (1 << bits) - 1)
        )
        shift //= 2
    if cell.kind == "$reduce_xnor":
        value = Value(f"invert({value.text})", bits, 0, (1 << bits) - 1)
    return tested(value, 1)


GATES: Mapping[str, str] = {
    "BUF": "{A}",
    "NOT": "~{A}",
    "AND": "{A} & {B}",
    "OR": "{A} | {B}",
    "XOR": "{A} ^ {B}",
    "NAND": "~({A} & {B})",
    "NOR": "~({A} | {B})",
    "XNOR": "~({A} ^ {B})",
    "ANDNOT": "{A} & ~{B}",
    "ORNOT": "{A} | ~{B}",
    "MUX": "({A} & ~{S}) | ({B} & {S})",
    "NMUX": "~(({A} & ~{S}) | ({B} & {S}))",
    "AOI3": "~(({A} & {B}) | {C})",
    "OAI3": "~(({A} | {B}) & {C})",
    "AOI4": "~(({A} & {B}) | ({C} & {D}))",
    "OAI4": "~(({A} | {B}) & ({C} | {D}))",
}
"""Yosys's gates, `$_AND_` and so on, over the word of a mask: what thousands of gates call for each
would have to be compiled for each."""


def _gate(words: Words, cell: Cell) -> Value:
    operands = {port: f"{words.truth(op).text}.part[0]" for port, op in cell.operands.items()}
    return Value(f"{{{{Mask({GATES[cell.kind.strip('$_')].format(**operands)})}}}}", 1, 0, 1)


def _bit(words: Words, cell: Cell) -> Value:
    return words.truth(cell.operands["A"])


HANDLERS: Mapping[str, Callable[[Words, Cell], Value]] = {
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
    BIT: _bit,
    **dict.fromkeys((f"$_{name}_" for name in GATES), _gate),
}
"""The cell types that have a vector form."""
