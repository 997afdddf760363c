"""Operations that a step always computes, and operations computed only while some copy needs
them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from axs6.sim.batch.logic import TRUE, Literal
from axs6.sim.batch.netlist import Call, Netlist
from axs6.sim.batch.order import lean
from axs6.sim.batch.tables import Operation, with_tables

LEAST_OPERATIONS = 24
"""A group of fewer operations is computed always."""


@dataclass
class GuardedOperations:
    """Operations that are needed only if bit `guard` is 1, and their results.

    Args:
        guard: TRUE is always.
        operations: each after those of this group and those before that drive it.
        results: where bits go: a C++ variable, and the bit.
    """

    guard: Literal
    operations: list[Operation] = field(default_factory=list)
    results: list[tuple[str, Literal]] = field(default_factory=list)


def schedule(
    netlist: Netlist, results: Iterable[tuple[str, Literal, Literal]]
) -> list[GuardedOperations]:
    """Groups of a netlist: first what is computed always, then one for each guard.

    An operation that feeds nothing but results of one guard belongs to it.

    Args:
        netlist: to compute.
        results: a C++ variable, the bit that it takes, and the bit where which is 1 it matters.
    """
    results = list(results)
    operations = lean(with_tables(netlist), netlist.ends())
    users: dict[Literal, set[Literal]] = {}
    for _, bit, guard in results:
        users.setdefault(bit, set()).add(guard)
        users.setdefault(guard, set()).add(TRUE)
    owners = []
    for each in reversed(operations):
        wanted = {guard for bit in each.driven for guard in users.get(bit, ())}
        owners.append(wanted.pop() if len(wanted) == 1 else TRUE)
        for bit in each.read:
            users.setdefault(bit, set()).add(owners[-1])
    owners.reverse()
    sizes: dict[Literal, int] = {}
    for each, guard in zip(operations, owners, strict=True):
        size = len(each.function.logic.nodes) if isinstance(each, Call) else 1
        sizes[guard] = sizes.get(guard, 0) + size
    worth = [guard for guard, size in sizes.items() if guard != TRUE and size >= LEAST_OPERATIONS]
    groups = {guard: GuardedOperations(guard) for guard in (TRUE, *worth)}
    for each, guard in zip(operations, owners, strict=True):
        groups.get(guard, groups[TRUE]).operations.append(each)
    for name, bit, guard in results:
        groups.get(guard, groups[TRUE]).results.append((name, bit))
    return list(groups.values())
