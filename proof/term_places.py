"""Where the codes and scales are that the terms of a step are made of."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.floats import Special, Value
from axs6.hw.core.layouts import scale_names
from axs6.proof.aig import FALSE
from axs6.proof.cores import Core
from axs6.proof.relations import Numbered
from axs6.proof.step_meaning import StepMeaning

SIDES = "ab"


class TermPlaces:
    """Where codes and scales of terms are.

    Args:
        meaning: of the fields. core: what makes them. seconds: limit of a question.
    """

    def __init__(self, meaning: StepMeaning, core: Core, seconds: float) -> None:
        self.meaning, self.core, self.seconds = meaning, core, seconds
        self.words = Numbered(core)
        self.count = meaning.lanes // meaning.size
        plan = meaning.align.plan
        self._names = [
            dict(zip(scale_names(form.format)[::-1], form.format.blocked, strict=True))
            for form in plan.forms
        ]

    def scales(self, lane: int) -> list[tuple[exact.Level, str]]:
        """The scales that a lane's values have, with the names of their numbers."""
        found = []
        for side, definition, names in zip(SIDES, self.meaning.sides, self._names, strict=True):
            for level, name in zip(definition.levels, names, strict=False):
                assert isinstance(level.group, int)
                whole = f"{side}.{name}"
                index = lane // min(level.group, self.meaning.lanes)
                found.append((level, whole if whole in self.words.inputs else f"{whole}{index}"))
        return found

    def factors(self, lane: int) -> list[tuple[exact.Level, str]]:
        """Those that multiply, and are not exponents alone."""
        return [x for x in self.scales(lane) if not isinstance(x[0], exact.Exponent)]

    def lane_names(self, lane: int) -> list[str]:
        """Names of the numbers on which the term of a lane depends."""
        return [f"{side}.codes{lane}" for side in SIDES] + [x for _, x in self.factors(lane)]

    def bits(self, names: Sequence[str]) -> list[int]:
        """Literals of numbers, without the signs of scales."""
        bits = (bit for name in names for bit in self.words.given(name))
        return [bit for bit in bits if bit not in self.signs]

    def found(self, name: str) -> list[int]:
        """Literals of an output, for scales without signs; none if there is no such output."""
        if name not in self.words.outputs:
            return []
        return self.core.graph.cofactor(self.words.found(name), self.signs)

    @cached_property
    def signs(self) -> dict[int, int]:
        """Signs of scales, which are positive."""
        found = {}
        for lane in range(self.meaning.lanes):
            for level, name in self.scales(lane):
                if isinstance(level, exact.Real) and level.signed:
                    found[self.words.given(name)[-1]] = FALSE
        return found

    def cluster(self, index: int) -> int:
        """The first lane of a cluster of terms."""
        clusters = self.meaning.align.plan.clusters
        return index * self.meaning.lanes // clusters


def is_number(value: Value) -> bool:
    """Whether a value is a number that a scale may have."""
    return isinstance(value, Fraction) and value >= 0


def is_zero(value: Value) -> bool:
    """Whether a value is 0 of any sign."""
    return value is Special.NEGATIVE_ZERO or value == 0


def is_infinite(value: Value) -> bool:
    """Whether a value is infinite."""
    return value in (Special.INFINITY, Special.NEGATIVE_INFINITY)


def is_minus(value: Value) -> bool:
    """Whether a value has a minus sign."""
    if isinstance(value, Fraction):
        return value < 0
    return value in (Special.NEGATIVE_INFINITY, Special.NEGATIVE_ZERO)
