"""Statements about cores whose outputs have to stand in a relation to their inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from axs6.hw.core.layouts import Field
from axs6.proof.aig import FALSE
from axs6.proof.cores import Core, Statement
from axs6.proof.rounding import PLACE
from axs6.proof.smt import Circuit
from axs6.proof.steps import NotShownError

Numbers = Mapping[str, int]
"""Numbers of a payload by name, without signs; element 2 of an array `x` is `x2`."""


@dataclass(frozen=True)
class Relation(Statement):
    """A statement by a relation, where some outputs do not matter.

    Args:
        holds: whether outputs are right, from numbers of the input and of the output.
    """

    holds: Callable[[Numbers, Numbers], bool]

    def wrong(self, payloads: Sequence[int]) -> int | None:
        """The first of some inputs for which the core's outputs are not right."""
        inputs, outputs = (numbers(x) for x in (self.core.inputs, self.core.outputs))
        for payload, found in zip(payloads, self.core.run(payloads), strict=True):
            if not self.holds(values_of(payload, inputs), values_of(found, outputs)):
                return payload
        return None


def relation(
    core: Core, show: Callable[[], None], holds: Callable[[Numbers, Numbers], bool]
) -> Relation:
    """A statement by a relation alone."""
    return Relation(core, show, lambda item: None, holds)


def numbers(fields: Sequence[Field]) -> list[Field]:
    """The numbers of fields, those of an array one by one; none without bits."""
    return [
        replace(
            field,
            name=_letters(f"{field.name}{k}" if field.shape else field.name),
            offset=field.offset + k * field.width,
            shape=(),
        )
        for field in fields
        for k in range(field.count)
        if field.width
    ]


def _letters(name: str) -> str:
    """A name that begins with a letter: that of part k of an array of layouts with `gk`."""
    return f"g{name}" if name[0].isdigit() else name


def values_of(payload: int, fields: Sequence[Field]) -> dict[str, int]:
    """Numbers in a payload."""
    return {x.name: payload >> x.offset & (1 << x.width) - 1 for x in fields}


class Numbered:
    """The numbers of a core in SMT-LIB: `x` of its input, and `x'` of its output, as `new_x`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.inputs = {field.name: field for field in numbers(core.inputs)}
        self.outputs = {field.name: field for field in numbers(core.outputs)}

    def given(self, name: str) -> list[int]:
        """Literals of a number of the input."""
        field = self.inputs[name]
        return self._core.graph.bus("i_payload", field.offset, field.width)

    def found(self, name: str) -> list[int]:
        """Literals of a number of the output."""
        field = self.outputs[name]
        return self._core.graph.bus("o_payload", field.offset, field.width)

    def wide(self, name: str, width: int = PLACE) -> str:
        """A number, extended to `width` bits; 0 if there is no such number."""
        fields = self.outputs if name.startswith("new_") else self.inputs
        field = fields.get(name.removeprefix("new_"))
        if field is None:
            return constant(0, width)
        return extended(name, field.width, width)

    def bit(self, name: str) -> str:
        """Whether a number of a bit is 1; false if there is none."""
        fields = self.outputs if name.startswith("new_") else self.inputs
        return f"(= {name} #b1)" if name.removeprefix("new_") in fields else "false"

    def show(
        self,
        outputs: Sequence[str],
        statement: str,
        definitions: str = "",
        cases: Mapping[str, str] | None = None,
        *,
        seconds: float,
    ) -> None:
        """Show a statement about some outputs, as `Circuit.show`."""
        words = {f"new_{name}": self.found(name) for name in outputs if name in self.outputs}
        circuit = Circuit(self._core.graph, list(self.inputs.values()), words)
        circuit.show(statement, definitions, cases, seconds=seconds)

    def show_passed(self, names: Mapping[str, str]) -> None:
        """Show that numbers pass through: outputs by their names among the inputs; those that have
        none are 0.

        Raises:
            NotShownError: one does not.
        """
        for out, name in names.items():
            found = self.found(out)
            given = self.given(name) if name in self.inputs else [FALSE] * len(found)
            if found != given:
                raise NotShownError(f"{name} does not pass through")


def constant(value: int, width: int = PLACE) -> str:
    """A constant of `width` bits."""
    return f"(_ bv{value % (1 << width)} {width})"


def extended(word: str, own: int, width: int) -> str:
    """A number with zeros above it."""
    assert own <= width
    return f"((_ zero_extend {width - own}) {word})" if own < width else word


def conjunction(*parts: str) -> str:
    """All of some conditions."""
    return f"(and true {' '.join(parts)})"


def disjunction(*parts: str) -> str:
    """Any of some conditions."""
    return f"(or false {' '.join(parts)})"


def defined(*lines: tuple[str, str, str]) -> str:
    """Definitions of name, sort and value."""
    return "\n".join(f"(define-fun {name} () {sort} {value})" for name, sort, value in lines)


def place(width: int = PLACE) -> str:
    """The sort of words of `width` bits."""
    return f"(_ BitVec {width})"


def flat(groups: Sequence[Sequence[str]]) -> list[str]:
    """Names of some groups in a row."""
    return [*chain.from_iterable(groups)]
