"""Graphs of conjunctions, held against truth tables."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysat.solvers import Solver

from axs6.proof.aig import FALSE, TRUE, Graph, read_aiger, write_aiger
from axs6.proof.cases import cases_of, counting
from axs6.proof.yosys import run_yosys
from axs6.synth.errors import SynthesisError

NAMES = ("a[0]", "a[1]", "a[2]", "b[0]")


def solutions(graph: Graph, literal: int) -> set[tuple[bool, ...]]:
    """Values of the inputs with which a literal is true, from its clauses."""
    found = set()
    for values in product((False, True), repeat=len(NAMES)):
        signs = zip(graph.inputs.values(), values, strict=True)
        given = [graph.variable(each ^ (not value)) for each, value in signs]
        with Solver("glucose4", bootstrap_with=graph.clauses([literal])) as solver:
            if solver.solve([*given, graph.variable(literal)]):
                found.add(values)
            assert solver.solve([*given, -graph.variable(literal)]) is (values not in found)
    return found


def every(condition: Callable[[tuple[bool, ...]], bool]) -> set[tuple[bool, ...]]:
    values = product((False, True), repeat=len(NAMES))
    return {each for each in values if condition(each)}


def test_operations_have_their_truth_tables() -> None:
    graph = Graph(NAMES)
    a, b, c, d = graph.inputs.values()
    assert solutions(graph, graph.both(a, b ^ 1)) == every(lambda x: x[0] and not x[1])
    assert solutions(graph, graph.unlike(a, d)) == every(lambda x: x[0] != x[3])
    assert solutions(graph, graph.any([a, b, c ^ 1])) == every(lambda x: x[0] or x[1] or not x[2])
    for number in range(8):
        at_most = graph.at_most([a, b, c], number)
        assert solutions(graph, at_most) == every(
            lambda x, most=number: x[0] + 2 * x[1] + 4 * x[2] <= most
        )
    assert graph.both(a, a ^ 1) == graph.any([]) == FALSE
    assert graph.both(a, TRUE) == graph.both(a, a) == a


def test_a_cofactor_has_literals_in_place_of_inputs() -> None:
    graph = Graph(NAMES)
    a, b, c, _ = graph.inputs.values()
    whole = graph.any([graph.both(a, b), graph.unlike(b, c)])
    (found,) = graph.cofactor([whole], {b: TRUE, a: c ^ 1})
    assert found == graph.any([c ^ 1])
    assert graph.cofactor([whole], {b: FALSE}) == [c]


def test_a_design_is_read_with_its_registers(tmp_path: Path) -> None:
    (tmp_path / "design.v").write_text(
        "module t(input clk, input [2:0] a, input b, output y, output reg q);\n"
        "  always @(posedge clk) q <= ^a;\n  assign y = (a + b > 5) ^ q;\nendmodule\n"
    )
    commands = [
        "read_verilog design.v",
        "synth -top t -flatten",
        "aigmap",
        "write_aiger -map t.map t.aig",
    ]
    run_yosys(tmp_path, commands, "t", 60)
    files = tmp_path / "t.aig", tmp_path / "t.map"
    graph = read_aiger(*files, ["y[0]", "q[0]"])
    with pytest.raises(ValueError, match=r"t\.aig must have the outputs y\[0\] in this order"):
        read_aiger(*files, ["y[0]"])
    assert set(graph.inputs) == {"a[0]", "a[1]", "a[2]", "b[0]", "q[0]"} | (
        graph.inputs.keys() & {"clk[0]"}
    )
    free = {name: graph.inputs[name] for name in (*NAMES, "q[0]")}
    for values in product((0, 1), repeat=len(free)):
        at = dict(zip(free.values(), values, strict=True))
        y, q = graph.cofactor([graph.outputs["y[0]"], graph.outputs["next q[0]"]], at)
        number = values[0] + 2 * values[1] + 4 * values[2]
        assert y == (number + values[3] > 5) ^ values[4]
        assert q == number.bit_count() % 2


@given(st.integers(0, 15), st.integers(0, 15))
def test_sums_and_tables_are_those_of_integers(a: int, b: int) -> None:
    graph = Graph([])
    bits = [[x >> k & 1 for k in range(4)] for x in (a, b)]
    for width in (4, 5):
        total = graph.sum(bits[0], bits[1], width)
        assert sum(bit << k for k, bit in enumerate(total)) == (a + b) % (1 << width)
    assert graph.look_up(bits[0], [k == b for k in range(16)]) == (a == b)


def test_values_are_those_of_cofactors() -> None:
    """64 cases in a word, and a node in the place of an input."""
    graph = Graph(NAMES)
    a, b, c, d = graph.inputs.values()
    inner = graph.unlike(a, b)
    literals = [graph.any([inner ^ 1, c]), graph.both(inner, d) ^ 1]
    for words, literal in zip(
        graph.values(literals, counting([a, b, c, d])), literals, strict=True
    ):
        for case, value in enumerate(cases_of(words, 4)):
            at = {bit: case >> k & 1 for k, bit in enumerate((a, b, c, d))}
            assert graph.cofactor([literal], at) == [value]
    node = inner & ~1
    (words,) = graph.values([inner], {node: np.array([5], np.uint64)})
    assert words[0] == (~np.uint64(5) if inner & 1 else 5)


def test_a_graph_is_written_and_read_back(tmp_path: Path) -> None:
    graph = Graph(NAMES)
    a, b, c, d = graph.inputs.values()
    taken = graph.any([graph.both(a, d), b])
    write_aiger(tmp_path / "t.aig", graph, [a, b, c], [graph.unlike(d, c) ^ 1], [(d, taken)])
    names = [*(f"input {k} 0 {name}" for k, name in enumerate("abc")), "latch 0 0 d"]
    (tmp_path / "t.map").write_text("\n".join(names))
    found = read_aiger(tmp_path / "t.aig", tmp_path / "t.map", ["y[0]"])
    for values in product((0, 1), repeat=4):
        at = dict(zip((found.inputs[f"{x}[0]"] for x in "abcd"), values, strict=True))
        y, after = found.cofactor([found.outputs["y[0]"], found.outputs["next d[0]"]], at)
        assert (y, after) == (values[3] ^ values[2] ^ 1, (values[0] & values[3]) | values[1])


def test_a_large_graph_is_written_and_read_back(tmp_path: Path) -> None:
    """Literals further apart than a byte of the format holds, and than two."""
    names = [f"a[{k}]" for k in range(9000)]
    graph = Graph(names)
    bits = list(graph.inputs.values())
    outputs = [graph.both(bits[k], bits[-1 - k] ^ 1) for k in (0, 1, 63, 64, 127, 128, 4000)]
    outputs += [graph.both(outputs[0], outputs[-1]), graph.all(outputs)]
    write_aiger(tmp_path / "t.aig", graph, bits, outputs)
    (tmp_path / "t.map").write_text("\n".join(f"input {k} {k} a" for k in range(9000)))
    wanted = [f"y[{k}]" for k in range(len(outputs))]
    found = read_aiger(tmp_path / "t.aig", tmp_path / "t.map", wanted)
    rng = np.random.default_rng(1)
    words = rng.integers(0, 1 << 64, (9000, 1), np.uint64) | rng.integers(
        0, 1 << 64, (9000, 1), np.uint64
    )
    expected = graph.values(outputs, dict(zip(bits, words, strict=True)))
    given = {found.inputs[name]: word for name, word in zip(names, words, strict=True)}
    assert found.values([found.outputs[name] for name in wanted], given) == expected


def test_outputs_are_copied_into_another_graph() -> None:
    graph = Graph(NAMES)
    a, b, c, d = graph.inputs.values()
    inner = graph.unlike(a, b ^ 1)
    outputs = {"y[0]": graph.any([inner, c ^ 1]) ^ 1, "y[1]": d ^ 1, "y[2]": TRUE, "y[3]": inner}
    into = Graph(("x", "y", "z"))
    x, y, z = into.inputs.values()
    inputs = {"a[0]": x, "a[1]": y ^ 1, "a[2]": into.both(y, z), "b[0]": FALSE, "more[0]": x}
    found = graph.with_outputs(outputs).copied(into, inputs)
    assert found == {
        "y[0]": into.any([into.unlike(x, y), into.both(y, z) ^ 1]) ^ 1,
        "y[1]": TRUE,
        "y[2]": TRUE,
        "y[3]": into.unlike(x, y),
    }


def test_cuts_end_where_nodes_depend_on_inputs_of_one_kind() -> None:
    graph = Graph(NAMES)
    a, b, c, d = graph.inputs.values()
    plain, mixed = graph.both(a, b), graph.both(c, d)
    whole = graph.both(graph.both(plain, mixed ^ 1), c)
    kinds = {literal >> 1: 1 << (literal == d) for literal in (a, b, c, d)}
    supports = graph.supports(kinds)
    assert [supports[x >> 1] for x in (0, a, d, plain, mixed, whole)] == [0, 1, 2, 1, 3, 3]
    cut = graph.cuts([whole], supports, 2)
    assert cut(whole >> 1) == {plain >> 1, c >> 1}
    assert cut(mixed >> 1) == {c >> 1}
    assert cut(plain >> 1) == {plain >> 1}
    assert cut(d >> 1) == cut(0) == set()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.aig").write_bytes(b"aag 0 0 0 0 0\n")
    with pytest.raises(ValueError, match=r"t\.aig must be a binary AIGER file"):
        read_aiger(tmp_path / "t.aig", tmp_path / "t.map", [])


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(SynthesisError, match=r"a design: Yosys failed: ERROR: .*nothing\.v"):
        run_yosys(tmp_path, ["read_verilog nothing.v"], "a design", 60)
    with pytest.raises(SynthesisError, match=r"a design: Yosys did not finish within 0\.1 s"):
        run_yosys(tmp_path, ["exec -- sleep 20"], "a design", 0.1)
