"""Yosys cells as logic of single bits. Bits of a word stand lowest first."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

from axs6.sim.batch.logic import FALSE, TRUE, Literal, Logic
from axs6.sim.batch.netlist import NetlistError

Bits = list[Literal]
Operands = Mapping[str, Bits]
Parameters = Mapping[str, int]


def cell_bits(
    logic: Logic, kind: str, parameters: Parameters, operands: Operands, width: int
) -> Bits:
    """The `width` bits of a combinational cell's output.

    Args:
        logic: takes the nodes.
        kind: Yosys's type of the cell, such as `$add` or `$_AND_`.
        parameters: of the cell: A_SIGNED and B_SIGNED are looked at.
        operands: bits of each input port.

    Raises:
        NetlistError: a type of cell that the batch simulator does not handle.
    """
    cell = _ArithmeticCell(logic, kind, parameters, operands, width)
    if kind.strip("$_") in GATES and kind.startswith("$_"):
        gate = GATES[kind.strip("$_")]
        return [gate(logic, *(operands[port][0] for port in "ABCDS" if port in operands))]
    if kind not in CELLS:
        raise NetlistError(f"a {kind} cell is not handled by the batch simulator")
    return extended(CELLS[kind](cell), width, False)


def extended(bits: Bits, width: int, signed: bool) -> Bits:
    """The bits cut to `width`, or continued with 0 or with the sign."""
    more = bits[-1] if signed and bits else FALSE
    return [*bits[:width], *[more] * (width - len(bits))]


class _ArithmeticCell:
    """A cell that is being turned into logic."""

    def __init__(
        self, logic: Logic, kind: str, parameters: Parameters, operands: Operands, width: int
    ) -> None:
        self.logic, self.kind, self.operands, self.width = logic, kind, operands, width
        self._flags = {port: bool(parameters.get(f"{port}_SIGNED", 0)) for port in "AB"}

    def signed(self, *ports: str) -> bool:
        """Whether all these operands are signed."""
        return all(self._flags[port] for port in ports)

    def arguments(self, ports: str, width: int) -> list[Bits]:
        """Operands extended to one width, with their signs where all have one."""
        signed = self.signed(*ports)
        return [extended(self.operands[port], width, signed) for port in ports]


def add(logic: Logic, a: Bits, b: Bits, carry: Literal = FALSE) -> tuple[Bits, Literal]:
    """Sum of two words of one width, and the carry out of it."""
    total = []
    for x, y in zip(a, b, strict=True):
        bit, carry = logic.sum(x, y, carry)
        total.append(bit)
    return total, carry


def _add(cell: _ArithmeticCell) -> Bits:
    a, b = cell.arguments("AB", cell.width)
    return add(cell.logic, a, b)[0]


def _subtract(cell: _ArithmeticCell) -> Bits:
    a, b = cell.arguments("AB", cell.width)
    return add(cell.logic, a, _inverted(b), TRUE)[0]


def _negate(cell: _ArithmeticCell) -> Bits:
    (a,) = cell.arguments("A", cell.width)
    return add(cell.logic, [FALSE] * cell.width, _inverted(a), TRUE)[0]


def _multiply(cell: _ArithmeticCell) -> Bits:
    """Multiples of A, added; the sign of a signed operand has a negative weight.

    A constant operand is the sum of the fewest powers of two and their negatives.
    """
    a, b = cell.operands["A"], cell.operands["B"]
    if all(bit in (FALSE, TRUE) for bit in a):
        a, b = b, a
    signed = cell.signed("A", "B")
    sign = len(b) - 1 if signed else None
    if all(bit in (FALSE, TRUE) for bit in b):
        value = sum(-bit << place if place == sign else bit << place for place, bit in enumerate(b))
        rows = [(place, a, digit < 0) for place, digit in _digits(value)]
    else:
        a = extended(a, cell.width, signed)
        rows = [
            (place, [cell.logic.both(each, bit) for each in a], place == sign)
            for place, bit in enumerate(b)
        ]
    total = [FALSE] * cell.width
    for place, row, negative in sorted(rows, key=lambda each: each[2]):
        if place < cell.width:
            row = extended(row, cell.width - place, signed)
            row = _inverted(row) if negative else row
            total[place:] = add(cell.logic, total[place:], row, int(negative))[0]
    return total


def _digits(value: int) -> Iterator[tuple[int, int]]:
    """Places of the digits 1 and -1 of a number, no two of which are neighbours."""
    place = 0
    while value:
        if value & 1:
            digit = 2 - (value & 3)
            yield place, digit
            value -= digit
        value >>= 1
        place += 1


def _inverted(bits: Iterable[Literal]) -> Bits:
    return [bit ^ 1 for bit in bits]


def _bitwise(cell: _ArithmeticCell) -> Bits:
    operation = {"$and": Logic.both, "$or": Logic.either}.get(cell.kind, Logic.differ)
    pairs = zip(*cell.arguments("AB", cell.width), strict=True)
    bits = [operation(cell.logic, a, b) for a, b in pairs]
    return _inverted(bits) if cell.kind == "$xnor" else bits


def _same(cell: _ArithmeticCell) -> Bits:
    return cell.arguments("A", cell.width)[0]


def _not(cell: _ArithmeticCell) -> Bits:
    return _inverted(_same(cell))


def _multiplex(cell: _ArithmeticCell) -> Bits:
    chosen = cell.operands["A"]
    alternatives, width = cell.operands["B"], cell.width
    for place, select in enumerate(cell.operands["S"]):
        other = alternatives[place * width : (place + 1) * width]
        pairs = zip(chosen, other, strict=True)
        chosen = [cell.logic.choose(select, low, high) for low, high in pairs]
    return chosen


def _compare(cell: _ArithmeticCell) -> Bits:
    a, b = cell.arguments("AB", max(len(cell.operands[port]) for port in "AB"))
    if cell.kind in ("$eq", "$ne"):
        pairs = zip(a, b, strict=True)
        different = _any(cell.logic, [cell.logic.differ(x, y) for x, y in pairs])
        return [different ^ (cell.kind == "$eq")]
    if cell.signed("A", "B"):
        a, b = [*a[:-1], a[-1] ^ 1], [*b[:-1], b[-1] ^ 1]
    if cell.kind in ("$gt", "$le"):
        a, b = b, a
    not_less = TRUE  # the carry of a - b
    for x, y in zip(a, b, strict=True):
        not_less = cell.logic.choose(cell.logic.differ(x, y), not_less, x)
    return [not_less ^ (cell.kind in ("$lt", "$gt"))]


def _shift(cell: _ArithmeticCell) -> Bits:
    """A multiplexer for each bit of the amount, which is unsigned and may exceed the width.

    The highest bit comes first, after which few bits matter to a narrow result. Bits of the amount
    that move everything out act together at the end.
    """
    if cell.signed("B"):
        raise NetlistError("a signed shift amount is not handled by the batch simulator")
    left, a_signed = cell.kind in ("$shl", "$sshl"), cell.signed("A")
    width = cell.width if left else max(cell.width, len(cell.operands["A"]))
    bits = extended(cell.operands["A"], width, a_signed)
    fill = bits[-1] if cell.kind == "$sshr" and a_signed else FALSE
    amount = cell.operands["B"]
    within = (width - 1).bit_length()
    for place, select in reversed(list(enumerate(amount[:within]))):
        more = [fill] * (1 << place)
        moved = [*more, *bits[: -len(more)]] if left else [*bits[len(more) :], *more]
        pairs = zip(bits, moved, strict=True)
        bits = [cell.logic.choose(select, stay, move) for stay, move in pairs]
    beyond = _any(cell.logic, amount[within:])
    return [cell.logic.choose(beyond, bit, fill) for bit in bits]


def _any(logic: Logic, bits: Iterable[Literal]) -> Literal:
    return reduce(logic.either, bits, FALSE)


def _reduce(cell: _ArithmeticCell) -> Bits:
    logic, bits = cell.logic, cell.operands["A"]
    match cell.kind:
        case "$reduce_and":
            return [_any(logic, _inverted(bits)) ^ 1]
        case "$reduce_xor" | "$reduce_xnor":
            return [reduce(logic.differ, bits, FALSE) ^ (cell.kind == "$reduce_xnor")]
        case _:
            return [_any(logic, bits) ^ (cell.kind == "$logic_not")]


def _logic(cell: _ArithmeticCell) -> Bits:
    a, b = (_any(cell.logic, cell.operands[port]) for port in "AB")
    return [(cell.logic.both if cell.kind == "$logic_and" else cell.logic.either)(a, b)]


CELLS: Mapping[str, Callable[[_ArithmeticCell], Bits]] = {
    "$add": _add,
    "$sub": _subtract,
    "$neg": _negate,
    "$mul": _multiply,
    "$pos": _same,
    "$not": _not,
    **dict.fromkeys(("$and", "$or", "$xor", "$xnor"), _bitwise),
    **dict.fromkeys(("$mux", "$pmux"), _multiplex),
    **dict.fromkeys(("$eq", "$ne", "$lt", "$le", "$gt", "$ge"), _compare),
    **dict.fromkeys(("$shl", "$shr", "$sshl", "$sshr", "$shiftx"), _shift),
    **dict.fromkeys(("$reduce_and", "$reduce_or", "$reduce_bool", "$logic_not"), _reduce),
    **dict.fromkeys(("$reduce_xor", "$reduce_xnor"), _reduce),
    **dict.fromkeys(("$logic_and", "$logic_or"), _logic),
}
"""Logic of each type of cell with words."""

GATES: Mapping[str, Callable[..., Literal]] = {
    "BUF": lambda _, a: a,
    "NOT": lambda _, a: a ^ 1,
    "AND": Logic.both,
    "OR": Logic.either,
    "XOR": Logic.differ,
    "NAND": lambda g, a, b: g.both(a, b) ^ 1,
    "NOR": lambda g, a, b: g.either(a, b) ^ 1,
    "XNOR": lambda g, a, b: g.differ(a, b) ^ 1,
    "ANDNOT": lambda g, a, b: g.both(a, b ^ 1),
    "ORNOT": lambda g, a, b: g.either(a, b ^ 1),
    "MUX": lambda g, a, b, s: g.choose(s, a, b),
    "NMUX": lambda g, a, b, s: g.choose(s, a, b) ^ 1,
    "AOI3": lambda g, a, b, c: g.either(g.both(a, b), c) ^ 1,
    "OAI3": lambda g, a, b, c: g.both(g.either(a, b), c) ^ 1,
    "AOI4": lambda g, a, b, c, d: g.either(g.both(a, b), g.both(c, d)) ^ 1,
    "OAI4": lambda g, a, b, c, d: g.both(g.either(a, b), g.either(c, d)) ^ 1,
}
"""Yosys's gates, `$_AND_` and so on, of their operands A, B, C, D, S."""
