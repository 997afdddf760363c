"""Netlists of gates: each bit of an input is taken out of its word once, for all its gates."""

from dataclasses import replace

from axs6.sim.batch.netlist import Cell, Netlist, Operand, Piece, Word

BIT = "$bit"
"""Type of the cells that take a bit out of a word; their operand is A."""


def with_bits(netlist: Netlist) -> Netlist:
    """A netlist without calls, in which cells read the inputs bit by bit through `$bit` cells."""
    inputs = {word for words in netlist.inputs.values() for word in words if word.width > 1}
    bits: dict[Piece, Word] = {}

    def split(operand: Operand) -> Operand:
        return tuple(one(piece) for piece in operand)

    def one(piece: Piece) -> Piece:
        if piece.word not in inputs or piece.width > 1:
            return piece
        name = f"{piece.word.name}[{piece.offset}]"
        return Piece(bits.setdefault(piece, Word(name, 1)), 0, 1)

    cells = [
        replace(cell, operands={port: split(each) for port, each in cell.operands.items()})
        for cell in netlist.cells
        if isinstance(cell, Cell)
    ]
    registers = [replace(each, data=split(each.data)) for each in netlist.registers]
    taken = [Cell(BIT, {}, {"A": (piece,)}, word) for piece, word in bits.items()]
    return replace(netlist, cells=[*taken, *cells], registers=registers)
