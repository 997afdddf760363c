"""How the batch simulator divides a design: into functions, guarded groups, tables and parts."""

import operator
import re
from functools import cache
from itertools import product
from typing import Any

import pytest

from axs6.hw.core.rtlil import convert
from axs6.hw.registry import UNITS
from axs6.sim.batch.arithmetic import add, cell_bits
from axs6.sim.batch.engine import component_source
from axs6.sim.batch.logic import FALSE, TRUE, Literal, Logic
from axs6.sim.batch.model import step_groups
from axs6.sim.batch.modules import with_functions
from axs6.sim.batch.netlist import Call, Netlist, NetlistError, yosys_json
from axs6.sim.batch.order import lean
from axs6.sim.batch.read import read_netlist
from axs6.sim.batch.tables import LookupTable, Operation, with_tables

KEPT = r"^attribute \\keep_hierarchy 1\n(?:attribute .*\n)*module \\(\S+)"
TILE = {"block": 8, "rows": 2, "columns": 2, "interleave": 3}


def functions(unit: str, **parameters: Any) -> set[str]:
    """Modules that become functions."""
    text = convert(UNITS[unit].build(**parameters), "top")
    return set(re.findall(KEPT, with_functions(text, "top"), re.MULTILINE))


@cache
def netlist(unit: str, **parameters: Any) -> Netlist:
    return read_netlist(yosys_json(UNITS[unit].build(**parameters)))


def test_the_lanes_of_a_tile_become_functions() -> None:
    kept = functions("matmul", **TILE)
    assert {"top.reduction.term", "top.reduction.result"} < kept
    assert all(name.startswith("top.reduction.") for name in kept)


def test_the_lanes_of_a_dot_product_become_functions() -> None:
    assert functions("dot", block=8) == {"top.partial_lane", "top.product_lane"}


def test_calls_are_one_for_each_lane() -> None:
    design = netlist("matmul", **TILE)
    for function in design.functions:
        assert sum(call.function is function for call in design.calls) == 4
    text = component_source(UNITS["matmul"].build(**TILE)).text
    assert len(re.findall(r"^NOINLINE void f\d+\(", text, re.M)) == len(design.functions)


def test_divisions_wait_for_a_result() -> None:
    """Only a finished vector is divided; the additions go on in every cycle."""
    design = netlist("matmul", **TILE)
    always, *guarded = step_groups(design)
    assert always.guard == TRUE
    shown = next(group for group in guarded if any("m.o[" in name for name, _ in group.results))
    assert sum(isinstance(operation, Call) for operation in shown.operations) == 4


def test_an_operation_is_in_the_group_of_all_that_read_it() -> None:
    groups = step_groups(netlist("dot", block=8, stages=6))
    place = {
        bit: n for n, group in enumerate(groups) for op in group.operations for bit in op.driven
    }
    for n, group in enumerate(groups):
        for operation in group.operations:
            assert all(place[bit] in (0, n) for bit in operation.read if bit in place)
    assert len(groups) >= 3
    assert len({group.guard for group in groups}) == len(groups)


def in_order(operations: list[Operation]) -> bool:
    driven = {bit for operation in operations for bit in operation.driven}
    known: set[Literal] = set()
    for operation in operations:
        if not driven & set(operation.read) <= known:
            return False
        known |= set(operation.driven)
    return True


def waiting(operations: list[Operation], kept: set[Literal]) -> int:
    """The most bits that wait for a reader at one time."""
    last = {bit: n for n, operation in enumerate(operations) for bit in operation.read}
    live: set[Literal] = set()
    most = 0
    for n, operation in enumerate(operations):
        live |= set(operation.driven)
        most = max(most, len(live))
        live = {bit for bit in live if bit in kept or last.get(bit, -1) > n}
    return most


def test_a_lean_order_keeps_few_bits() -> None:
    design = netlist("block_dot", block=32)
    operations = with_tables(design)
    ends = set(design.ends())
    ordered = lean(operations, ends)
    assert sorted(map(id, ordered)) == sorted(map(id, operations))
    assert in_order(ordered)
    assert not in_order(ordered[::-1])
    by_level = level_order(operations)
    assert in_order(by_level)
    assert waiting(ordered, ends) < waiting(by_level, ends)


def level_order(operations: list[Operation]) -> list[Operation]:
    """The operations by their distance from the leaves."""
    driver = {bit: operation for operation in operations for bit in operation.driven}

    @cache
    def level(operation: Operation) -> int:
        return 1 + max((level(driver[bit]) for bit in operation.read if bit in driver), default=0)

    return sorted(operations, key=level)


def test_a_full_adder_becomes_two_tables() -> None:
    design = Netlist("adders")
    logic = design.logic
    a, b = ([logic.leaf() for _ in range(16)] for _ in range(2))
    total, carry = add(logic, a, b, logic.leaf())
    design.outputs["sum"] = [*total, carry]
    assert len(with_tables(design)) == 2 * 16


def evaluate(design: Netlist, values: dict[Literal, int]) -> dict[Literal, int]:
    """Bits from those of the leaves, each operation once."""
    values = {FALSE: 0, TRUE: 1, **values}
    for operation in lean(with_tables(design), design.ends()):
        assert isinstance(operation, LookupTable)
        row = 0
        for bit in (*operation.read, *[operation.read[-1]] * 2)[:3]:
            row = 2 * row + values[bit]
        values[operation.driven[0]] = operation.table >> row & 1
    return values


SHIFTS: dict[str, Any] = {
    **dict.fromkeys(("$shl", "$sshl"), operator.lshift),
    **dict.fromkeys(("$shr", "$sshr", "$shiftx"), operator.rshift),
}
OTHERS: dict[str, Any] = {
    "$add": operator.add,
    "$sub": operator.sub,
    "$mul": operator.mul,
    "$and": operator.and_,
    "$or": operator.or_,
    "$xor": operator.xor,
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$lt": operator.lt,
    "$le": operator.le,
    "$gt": operator.gt,
    "$ge": operator.ge,
}


def number(value: int, width: int, signed: int) -> int:
    return value - (value >> (width - 1) << width) if signed else value


@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("kind", [*OTHERS, *SHIFTS])
@pytest.mark.parametrize(("a_width", "b_width", "width"), [(3, 3, 6), (4, 2, 3), (2, 4, 7)])
def test_cells_of_words(kind: str, signed: int, a_width: int, b_width: int, width: int) -> None:
    """All operands, against Python's integers."""
    shift = kind in SHIFTS
    flags = {"A_SIGNED": signed, "B_SIGNED": 0 if shift else signed}
    design = Netlist("cell")
    leaves = {
        p: [design.logic.leaf() for _ in range(w)] for p, w in (("A", a_width), ("B", b_width))
    }
    bits = cell_bits(design.logic, kind, flags, leaves, width)
    design.outputs["Y"] = bits
    for a, b in product(range(1 << a_width), range(1 << b_width)):
        given = {bit: a >> k & 1 for k, bit in enumerate(leaves["A"])}
        given |= {bit: b >> k & 1 for k, bit in enumerate(leaves["B"])}
        values = evaluate(design, given)
        found = sum(values[bit] << k for k, bit in enumerate(bits))
        x, y = number(a, a_width, signed), number(b, b_width, flags["B_SIGNED"])
        if kind in ("$shr", "$shiftx"):  # zeros come in from the left
            x %= 1 << max(width, a_width)
        expected = int({**OTHERS, **SHIFTS}[kind](x, y))
        assert found == expected % (1 << width), (a, b)


@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("constant", ["A", "B"])
def test_products_by_constants(constant: str, signed: int) -> None:
    """All constants of four bits, times all numbers of three."""
    for value, width in product(range(16), (3, 8)):
        design = Netlist("cell")
        leaves = [design.logic.leaf() for _ in range(3)]
        other = "AB".replace(constant, "")
        operands = {constant: [value >> k & 1 for k in range(4)], other: leaves}
        flags = {"A_SIGNED": signed, "B_SIGNED": signed}
        bits = cell_bits(design.logic, "$mul", flags, operands, width)
        design.outputs["Y"] = bits
        for x in range(8):
            values = evaluate(design, {bit: x >> k & 1 for k, bit in enumerate(leaves)})
            found = sum(values[bit] << k for k, bit in enumerate(bits))
            expected = number(x, 3, signed) * number(value, 4, signed)
            assert found == expected % (1 << width), (value, x)


def test_a_product_by_thirty_one_is_one_subtraction() -> None:
    design = Netlist("cell")
    a = [design.logic.leaf() for _ in range(24)]
    constant = [TRUE] * 5
    design.outputs["Y"] = cell_bits(design.logic, "$mul", {}, {"A": a, "B": constant}, 29)
    assert len(with_tables(design)) <= 2 * 29


def test_a_cell_that_is_not_handled_is_named() -> None:
    with pytest.raises(NetlistError, match=r"\$div"):
        cell_bits(Logic(), "$div", {}, {"A": [FALSE], "B": [FALSE]}, 1)
    with pytest.raises(NetlistError, match="signed shift"):
        cell_bits(Logic(), "$shr", {"B_SIGNED": 1}, {"A": [FALSE], "B": [FALSE]}, 1)
