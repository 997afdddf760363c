"""Ranks of registers of a pipeline, and their handshakes.

Each function adds a rank that drives `ready` and returns whether it holds data, and which. Its
arguments are a module, a number for names, what comes (`valid` and an item), and `moves`: that the
data of the rank moves on, which is `ready` of the next one.

`ready` and `moves` of rigid ranks may be several equal bits, a power of two of them. Each drives a
part of the item, which limits the fan-out in a wide rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value


def add_rank(
    m: Module, number: int, valid: Value, ready: Value, item: Any, moves: Value
) -> tuple[Value, Any]:
    """Add a rank that takes new data when it is empty or its data moves on."""
    held = Signal(name=f"valid{number}")
    taken = Signal(item.shape(), name=f"stage{number}", reset_less=True)
    m.d.comb += ready.eq(~held | moves)
    with m.If(ready):
        m.d.sync += [held.eq(valid), taken.eq(item)]
    return held, taken


def add_rank_with_spare(
    m: Module, number: int, valid: Value, ready: Value, item: Any, moves: Value
) -> tuple[Value, Any]:
    """Add a skid buffer, whose `ready` is a register: a spare register keeps an item that comes
    during a stall."""
    held = Signal(name=f"valid{number}")
    taken = Signal(item.shape(), name=f"stage{number}", reset_less=True)
    waiting = Signal(name=f"waiting{number}")
    spare = Signal(item.shape(), name=f"spare{number}", reset_less=True)
    m.d.comb += ready.eq(~waiting)
    with m.If(valid & ready):
        m.d.sync += spare.eq(item)
    with m.If(moves | ~held):
        m.d.sync += [held.eq(valid | waiting), taken.eq(Mux(waiting, spare, item))]
    m.d.sync += waiting.eq((valid | waiting) & held & ~moves)
    return held, taken


def add_rigid_rank(
    m: Module, number: int, valid: Value, ready: Value, item: Any, moves: Value
) -> tuple[Value, Any]:
    """Add a rigid rank: it takes an item when the next rank does, whether it holds data or not."""
    held = Signal(name=f"valid{number}")
    taken = Signal(item.shape(), name=f"stage{number}", reset_less=True)
    m.d.comb += ready.eq(moves)
    with m.If(moves[0]):
        m.d.sync += held.eq(valid)
    for part in _parts(item, len(moves)):
        with m.If(moves[part.number]):
            m.d.sync += part.of(taken).eq(part.of(item))
    return held, taken


def add_rigid_rank_with_spare(
    m: Module, number: int, valid: Value, ready: Value, item: Any, moves: Value
) -> tuple[Value, Any]:
    """Add such a rank with a spare register, which takes an item that comes while the rank waits.

    `ready` is a register too. It says that the spare one is free, and needs no inverter in front of
    the registers that it enables.
    """
    held = Signal(name=f"valid{number}")
    taken = Signal(item.shape(), name=f"stage{number}", reset_less=True)
    room = Signal(len(ready), init=(1 << len(ready)) - 1, name=f"room{number}")
    spare = Signal(item.shape(), name=f"spare{number}", reset_less=True)
    m.d.comb += ready.eq(room)
    for copy, free in enumerate(room):
        moved = moves[copy * len(moves) // len(room)]
        m.d.sync += free.eq((free & ~valid) | moved)
    with m.If(moves[0]):
        m.d.sync += held.eq(valid | ~room[0])
    parts = max(len(room), len(moves))
    for part in _parts(item, parts):
        free = room[part.number * len(room) // parts]
        with m.If(free):
            m.d.sync += part.of(spare).eq(part.of(item))
        with m.If(moves[part.number * len(moves) // parts]):
            m.d.sync += part.of(taken).eq(Mux(free, part.of(item), part.of(spare)))
    return held, taken


@dataclass(frozen=True)
class _Part:
    """Some bits of an item, which are the part of that number."""

    number: int
    bits: slice

    def of(self, item: Any) -> Value:
        """Those bits."""
        return Value.cast(item)[self.bits]


def _parts(item: Any, number: int) -> Iterator[_Part]:
    """An item in a number of parts of equal size, the last of which may be smaller."""
    size = -(-len(Value.cast(item)) // number)
    return (_Part(part, slice(part * size, (part + 1) * size)) for part in range(number))


ADD_RANK = {
    (False, False): add_rank,
    (False, True): add_rank_with_spare,
    (True, False): add_rigid_rank,
    (True, True): add_rigid_rank_with_spare,
}
"""Functions that add a rank, by whether it is rigid and whether it is a skid buffer."""
