"""Statements about circuits in SMT-LIB, shown or refuted by the SMT solver bitwuzla.

A graph is written gate by gate. Its specification is text in SMT-LIB, whose theories
of bit vectors and of IEEE 754 numbers are standard and know nothing of the hardware.
"""

from collections.abc import Mapping, Sequence

from axs6.hw.core.layouts import Field
from axs6.proof.aig import Graph
from axs6.proof.steps import NotShownError

LOGIC = "(set-logic QF_BVFP)"


class Circuit:
    """Words of a graph in SMT-LIB, and statements about them for all inputs.

    Args:
        graph: of the words. inputs: fields of `i_payload`, which become constants with their
        names. words: literals of what else is to have a name, lowest first.
    """

    def __init__(
        self, graph: Graph, inputs: Sequence[Field], words: Mapping[str, Sequence[int]]
    ) -> None:
        self._inputs = inputs
        known = {0: "#b0"}
        lines = [LOGIC]
        for field in inputs:
            lines.append(f"(declare-const {field.name} (_ BitVec {field.width}))")
            for place, bit in enumerate(graph.bus("i_payload", field.offset, field.width)):
                known[bit >> 1] = f"((_ extract {place} {place}) {field.name})"
        ends = [bit for word in words.values() for bit in word]
        if others := graph.leaves(ends) - known.keys():
            raise NotShownError(f"outputs depend on {len(others)} bits beside the fields")

        def at(literal: int) -> str:
            name = known[literal >> 1]
            return f"(bvnot {name})" if literal & 1 else name

        for node in graph.cone(ends):
            pair = graph.operands(node)
            assert pair is not None
            known[node] = f"node{node}"
            lines.append(_define(known[node], 1, f"(bvand {at(pair[0])} {at(pair[1])})"))
        for name, word in words.items():
            bits = " ".join(map(at, reversed(word)))
            lines.append(_define(name, len(word), f"(concat {bits})" if len(word) > 1 else bits))
        self._text = "\n".join(lines)

    def show(
        self,
        statement: str,
        definitions: str = "",
        cases: Mapping[str, str] | None = None,
        *,
        seconds: float,
    ) -> None:
        """Show that a statement holds for all inputs.

        Args:
            statement: an expression of sort Bool. definitions: of what is in it. cases: conditions
            by their names, under which it is shown one after the other; what none of them covers is
            one more. seconds: limit of each case.

        Raises:
            NotShownError: it does not hold, and then the error has the payload; or time is over.
            ImportError: bitwuzla is missing.
        """
        known = {"all inputs": "true"}
        if cases:
            known = {**cases, "all others": f"(not (or false {' '.join(cases.values())}))"}
        for name, case in known.items():
            wanted = f"(assert (not {statement}))\n(assert {case})"
            found = ask(f"{self._text}\n{definitions}\n{wanted}", seconds)
            if found is None:
                raise NotShownError(f"time is over: {name}")
            if found:
                payload = sum(found[field.name] << field.offset for field in self._inputs)
                raise NotShownError(f"it is not so: {name}", payload)


def _define(name: str, width: int, value: str) -> str:
    return f"(define-fun {name} () (_ BitVec {width}) {value})"


def ask(text: str, seconds: float) -> dict[str, int] | None:
    """The declared constants, which are bit vectors, in an assignment that satisfies assertions.

    Args:
        text: SMT-LIB with at least one constant, and without commands that ask. seconds: limit.

    Returns:
        Empty if there is no assignment, None if the time is over.

    Raises:
        ImportError: bitwuzla is missing.
    """
    from bitwuzla import Bitwuzla, Options, Parser, Result, TermManager

    options = Options()
    options.set("produce-models", True)
    options.set("time-limit-per", max(1, int(1000 * seconds)))
    parser = Parser(TermManager(), options)
    parser.parse(text, parse_only=True, parse_file=False)
    solver: Bitwuzla = parser.bitwuzla()
    constants = parser.get_declared_funs()
    assert constants, "an assignment of nothing cannot be told from none"
    answer = solver.check_sat()
    if answer == Result.UNKNOWN:
        return None
    if answer == Result.UNSAT:
        return {}
    return {str(each.symbol()): int(solver.get_value(each).value(10)) for each in constants}
