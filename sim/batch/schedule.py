"""What a step computes always, and what only while some copy needs it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from axs6.sim.batch.netlist import Call, Cell, Netlist, Operand, Register, Word

LEAST_CELLS = 12
"""A group of fewer cells is computed always."""


@dataclass(frozen=True)
class Guard:
    """A condition: an operand of one bit, and whether it is active high."""

    operand: Operand
    high: bool


@dataclass
class Group:
    """Cells and registers that matter only while `guard` is active; None is always."""

    guard: Guard | None
    cells: list[Cell | Call] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    outputs: bool = False


def schedule(netlist: Netlist, payload: str, valid: str) -> list[Group]:
    """Groups of a netlist: first what is computed always, then one for each guard.

    A register with an enable and no reset takes its data only while enabled, and the port
    `payload` matters only while `valid` is 1. A cell that feeds nothing but such sinks of one
    guard belongs to it.
    """
    guards = {
        register: Guard(register.enable, register.enable_high)
        for register in netlist.registers
        if register.enable is not None and register.reset is None
    }
    shown = Guard(netlist.outputs[valid][0], True)
    users: dict[Word, set[Guard | None]] = {}

    def use(operands: Iterable[Operand], guard: Guard | None) -> None:
        for operand in operands:
            for piece in operand:
                if piece.word is not None:
                    users.setdefault(piece.word, set()).add(guard)

    for name, operands in netlist.outputs.items():
        use(operands, shown if name == payload else None)
    for register in netlist.registers:
        use([register.data], guards.get(register))
        use([each for each in (register.enable, register.reset) if each is not None], None)
    owner: dict[Cell | Call, Guard | None] = {}
    for cell in reversed(netlist.cells):
        wanted = {guard for word in cell.driven for guard in users.get(word, ())}
        owner[cell] = wanted.pop() if len(wanted) == 1 else None
        for word in cell.read:
            users.setdefault(word, set()).add(owner[cell])
    return _groups(netlist, owner, guards, shown)


def _groups(
    netlist: Netlist,
    owner: Mapping[Cell | Call, Guard | None],
    guards: Mapping[Register, Guard],
    shown: Guard,
) -> list[Group]:
    sizes: dict[Guard | None, int] = {}
    for cell, guard in owner.items():
        size = len(cell.function.cells) if isinstance(cell, Call) else 1
        sizes[guard] = sizes.get(guard, 0) + size
    worth = {guard for guard, size in sizes.items() if guard is not None and size >= LEAST_CELLS}
    groups = {
        guard: Group(guard) for guard in (None, *sorted(worth, key=list(owner.values()).index))
    }

    def group(guard: Guard | None) -> Group:
        return groups[guard if guard in worth else None]

    for cell in netlist.cells:
        group(owner[cell]).cells.append(cell)
    for register in netlist.registers:
        group(guards.get(register)).registers.append(register)
    group(shown).outputs = True
    return list(groups.values())
