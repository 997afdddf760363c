"""Operands of cells as vector expressions: joined, sliced, extended, or as truths."""

from collections.abc import Mapping, Sequence

from axs6.sim.batch.netlist import Cell, Operand, Piece, Word
from axs6.sim.batch.values import Value, constant, element_bits, resized, signed, unsigned


class Words:
    """The words of a module whose values are known so far, and the statements that made them.

    Args:
        values: where the words that no cell drives are found: inputs and registers.
    """

    def __init__(self, values: Mapping[Word, Value]) -> None:
        self._values = dict(values)
        self.lines: list[str] = []

    def define(self, word: Word, value: Value) -> None:
        """Give a word its value."""
        self._values[word] = value

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
        return combined("either", found) if found else constant(0, 8)

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
        return combined("both", found) if found else constant(-1, 8)


def combined(operation: str, texts: Sequence[str]) -> Value:
    """Truths joined by an operation of two."""
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
