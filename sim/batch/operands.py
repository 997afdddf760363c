"""Operands of cells as vector expressions: joined, sliced, extended, or as masks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axs6.sim.batch.netlist import Cell, Operand, Piece, Word
from axs6.sim.batch.values import Value, constant, element_bits, resized, signed, tested, unsigned


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
        """The unsigned value of a piece, in elements as large as its word's, or a mask."""
        if piece.word is None:
            return constant(piece.value, element_bits(piece.width))
        value = self._values[piece.word]
        if piece.width == 1:
            return tested(value, 1 << piece.offset)
        if piece.offset:
            whole = unsigned(value, piece.word.width)
            text = f"shr({whole.text}, {piece.offset})"
            value = Value(text, whole.bits, whole.low >> piece.offset, whole.high >> piece.offset)
        return unsigned(value, piece.width)

    def modular(self, operand: Operand, bits: int) -> Value:
        """An operand whose low bits are right, whatever lies above them."""
        if bits == 1:
            return self.piece(replace(operand[0], width=1, value=operand[0].value & 1))
        if len(operand) == 1 and operand[0].word is not None and not operand[0].offset:
            return resized(self._values[operand[0].word], bits)
        return self.zero_extended(operand, bits)

    def zero_extended(self, operand: Operand, bits: int) -> Value:
        """An operand as an unsigned value, in elements of `bits`, which hold its width."""
        parts = []
        low = high = position = 0
        for piece in operand:
            if piece.word is not None or piece.value:
                part = self._placed(piece, position, bits)
                low, high = low + part.low, high + part.high
                parts.append(part.text)
            position += piece.width
        if not parts:
            return constant(0, bits)
        text = parts[0]
        for part_text in parts[1:]:
            text = f"either({text}, {part_text})"
        return Value(text, bits, low, high)

    def _placed(self, piece: Piece, position: int, bits: int) -> Value:
        """A piece as an unsigned value with its lowest bit at `position`."""
        if piece.word is None:
            return constant(piece.value << position, bits)
        part = self.piece(piece)
        if part.bits == 1 and position:
            one = constant(1 << position, bits)
            return Value(f"where({part.text}, {one.text})", bits, 0, one.high)
        part = resized(part, bits)
        if not position:
            return part
        low, high = part.low << position, part.high << position
        return Value(f"shl({part.text}, {position})", bits, low, high)

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
        size = 1 if width == 1 else max(bits, element_bits(width))
        return resized(signed(self.modular(operand, size), width), bits)

    def word(self, operand: Operand) -> Value:
        """An operand as a function takes or gives it: an unsigned value."""
        return self.extended(operand, element_bits(operand_width(operand)), False)

    def argument(self, cell: Cell, port: str, bits: int) -> Value:
        """Operand `port` of an arithmetic or bitwise cell, extended to the width of its output."""
        operand = cell.operands[port]
        if operand_width(operand) >= cell.output.width:
            return self.modular(operand, bits)
        return self.extended(operand, bits, signed_cell(cell))

    def truth(self, operand: Operand) -> Value:
        """Whether an operand is not 0, as a mask."""
        found = []
        for piece in operand:
            if piece.word is None:
                if piece.value:
                    return constant(1, 1)
                continue
            mask = (1 << piece.width) - 1 << piece.offset
            found.append(tested(self._values[piece.word], mask).text)
        return combined("either", found) if found else constant(0, 1)

    def all_ones(self, operand: Operand) -> Value:
        """Whether every bit of an operand is 1, as a mask."""
        found = []
        for piece in operand:
            full = (1 << piece.width) - 1
            if piece.word is None:
                if piece.value != full:
                    return constant(0, 1)
                continue
            if piece.width == 1:
                found.append(self.truth((piece,)).text)
            else:
                value = self.piece(piece)
                found.append(f"eq({value.text}, {constant(full, value.bits).text})")
        return combined("both", found) if found else constant(1, 1)


def combined(operation: str, texts: Sequence[str]) -> Value:
    """Truths joined by an operation of two."""
    text = texts[0]
    for each in texts[1:]:
        text = f"{operation}({text}, {each})"
    return Value(text, 1, 0, 1)


def operand_width(operand: Operand) -> int:
    """Bits of an operand."""
    return sum(piece.width for piece in operand)


def signed_cell(cell: Cell) -> bool:
    """Whether a cell takes its operands as signed."""
    return cell.flag("A_SIGNED") and (cell.flag("B_SIGNED") or "B" not in cell.operands)
