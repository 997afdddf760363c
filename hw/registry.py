"""The units by name: their components, their parameters and what the golden model expects of them.

Every command, test, benchmark and report finds a unit here.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from amaranth.lib import wiring

from axs6.golden.lfsr import PERIOD
from axs6.golden.spec import (
    ALIGN_MAX,
    BLOCK_SIZES,
    DETERMINISTIC,
    INPUT_DTYPES,
    OUTPUT_DTYPES,
    RANDOM_BITS,
    RANDOM_BITS_MAX,
    RANDOM_SEED,
    Rounding,
)
from axs6.hw import expected, expected_axis
from axs6.hw.axis import AxisDecoder, AxisDot, AxisEncoder
from axs6.hw.core.layouts import fields
from axs6.hw.core.parameters import BEHAVIOUR, BLOCK_FORMS, VIEWS
from axs6.hw.decoder.decoder import Decoder
from axs6.hw.decoder.expander import Expander
from axs6.hw.dot.block_dot import BlockDot
from axs6.hw.dot.dot import Dot
from axs6.hw.dot.matmul import MOST_SIDE, Matmul
from axs6.hw.encoder.encoder import Encoder
from axs6.hw.encoder.feedback import FeedbackEncoder
from axs6.hw.encoder.modes import MODES
from axs6.hw.encoder.stochastic import StochasticEncoder
from axs6.hw.fp32.accumulator import MOST_INTERLEAVED
from axs6.hw.lfsr import Lfsr

LARGEST = {
    "interleave": MOST_INTERLEAVED,
    "random_bits": RANDOM_BITS_MAX,
    "lfsr_seed": PERIOD,
    "align": ALIGN_MAX,
    "rows": MOST_SIDE,
    "columns": MOST_SIDE,
}
"""Largest values of parameters that are integers from 1 on."""


@dataclass(frozen=True)
class Unit:
    """A unit of hardware.

    Args:
        name: name on the command line.
        summary: what it does, in one line.
        component: class of the component; its keyword arguments are the unit's parameters.
        choices: values that each parameter with a fixed set of them may take.
        golden: gives the output items that the unit must produce for input items and parameters.
        samples: values of the parameters without such a set that regressions use, but `stages`.
        operation: what it does for each value of a block and lane: "MAC", or "value" where it
            converts them or makes them.
        remembers: whether an output depends on all items since reset.
        needs: for a parameter that keeps its default unless another one has a certain value, the
            name of that one and the value.
    """

    name: str
    summary: str
    component: Callable[..., wiring.Component]
    choices: Mapping[str, tuple[Any, ...]]
    golden: Callable[[expected.Arrays, Mapping[str, Any]], expected.Outputs]
    samples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    operation: str = "MAC"
    remembers: bool = False
    needs: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters and their default values, in the order of the component's signature."""
        parameters = inspect.signature(self.component).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters, the given ones in place of their defaults.

        Raises:
            ValueError: the unit has no such parameter, or it means nothing beside the others.
        """
        for name in given:
            if name not in self.defaults:
                known = ", ".join(self.defaults)
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {known}")
        found = {**self.defaults, **given}
        for name, (other, value) in self.needs.items():
            if found[name] != self.defaults[name] and not self.takes(name, found):
                raise ValueError(f"{name} is for {other} {value}, not {found[other]}")
        return found

    def takes(self, name: str, given: Mapping[str, Any]) -> bool:
        """Whether a parameter may have another value than its default beside the given ones."""
        if name not in self.needs:
            return True
        other, value = self.needs[name]
        return bool(given.get(other, self.defaults[other]) == value)

    def simulated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters where a simulator runs the unit: the behaviour view is the default.

        Raises:
            ValueError: as of `parameters`.
        """
        view = {"view": BEHAVIOUR} if "view" in self.defaults else {}
        return self.parameters({**view, **given})

    def combinations(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Values of `choices` for tests: few, but any two values of two parameters meet in one.

        The defaults come first. Parameters in `given` keep their value.
        """
        defaults = self.defaults
        values = [
            [given[name]] if name in given else sorted(known, key=defaults[name].__ne__)
            for name, known in self.choices.items()
        ]
        rows = [dict(zip(self.choices, row, strict=True)) for row in product(*values)]
        missing = set().union(*map(_pairs, rows))
        found = []
        while missing:
            found.append(max(rows, key=lambda row: len(_pairs(row) & missing)))
            missing -= _pairs(found[-1])
        return found

    def most_stages(self, given: Mapping[str, Any]) -> int:
        """The largest `stages` with these parameters."""
        component: Any = self.build(**{**given, "stages": 0})
        return int(component.most_stages)

    def allowed(self, name: str, most_stages: int) -> str:
        """The values that a parameter may take, in a few characters."""
        if name in self.choices:
            return "|".join(map(str, self.choices[name]))
        if name == "stages":
            return f"0..{most_stages}"
        return f"1..{LARGEST[name]}"

    def inputs(self, given: Mapping[str, Any]) -> list[str]:
        """Names of the fields of an input item."""
        component: Any = self.build(**given)
        return [each.name for each in fields(component.i.payload.shape())]

    def build(self, **given: Any) -> wiring.Component:
        """The component with these parameters.

        Raises:
            ValueError: a parameter is unknown or has a value that the unit cannot take.
        """
        return self.component(**self.parameters(given))


def _pairs(row: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Pairs of values; the one value where there are no two."""
    return set(combinations(row.items(), min(2, len(row))))


_BLOCK = {"block": BLOCK_SIZES}
_VIEW = {"view": VIEWS}
_RANDOM_SAMPLES = {"random_bits": (RANDOM_BITS, 4, 32, 8)}
_SEED_SAMPLES = {"lfsr_seed": (RANDOM_SEED, 1)}
_DOT_SAMPLES = {"interleave": (1, MOST_INTERLEAVED, 4, 3)}
_MATMUL_SAMPLES = {
    "rows": (4, 1, 3, 2),
    "columns": (4, 2, 1, 2),
    "interleave": (4, MOST_INTERLEAVED, 1, 3),
}

UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit(
            "encoder",
            "a block of floating-point values becomes an AXS-6 block",
            Encoder,
            {
                **_BLOCK,
                "dtype": tuple(INPUT_DTYPES),
                "rounding": tuple(map(str, Rounding)),
                "mode": tuple(MODES),
                **_VIEW,
            },
            expected.encoder_items,
            _RANDOM_SAMPLES,
            operation="value",
            needs={"random_bits": ("rounding", str(Rounding.STOCHASTIC))},
        ),
        Unit(
            "stochastic_encoder",
            "an encoder with stochastic rounding and random words of its own",
            StochasticEncoder,
            {**_BLOCK, "dtype": tuple(INPUT_DTYPES), "mode": tuple(MODES)},
            expected.stochastic_encoder_items,
            {**_RANDOM_SAMPLES, **_SEED_SAMPLES},
            operation="value",
            remembers=True,
        ),
        Unit(
            "feedback_encoder",
            "an encoder that adds to values what encoding took from the ones before",
            FeedbackEncoder,
            {**_BLOCK, "rounding": tuple(map(str, DETERMINISTIC)), **_VIEW},
            expected.feedback_encoder_items,
            operation="value",
        ),
        Unit(
            "lfsr",
            "random words of a shift register for each lane",
            Lfsr,
            _BLOCK,
            expected.lfsr_items,
            {**_RANDOM_SAMPLES, **_SEED_SAMPLES},
            operation="value",
            remembers=True,
        ),
        Unit(
            "decoder",
            "an AXS-6 block becomes floating-point values",
            Decoder,
            {**_BLOCK, "dtype": tuple(OUTPUT_DTYPES), "blocks": BLOCK_FORMS, **_VIEW},
            expected.decoder_items,
            operation="value",
        ),
        Unit(
            "expander",
            "a packed block, dense or sparse, becomes a dense one",
            Expander,
            _BLOCK,
            expected.expander_items,
            operation="value",
        ),
        Unit(
            "block_dot",
            "two dense blocks become a 16-bit sum and a 9-bit exponent sum",
            BlockDot,
            {**_BLOCK, **_VIEW},
            expected.block_dot_items,
        ),
        Unit(
            "dot",
            "a stream of block pairs becomes one FP32 result for each vector",
            Dot,
            {**_BLOCK, "blocks": BLOCK_FORMS, **_VIEW},
            expected.dot_items,
            _DOT_SAMPLES,
        ),
        Unit(
            "matmul",
            "streams of R rows and C columns of blocks become an R x C tile of FP32 results",
            Matmul,
            {**_BLOCK, **_VIEW},
            expected.matmul_items,
            _MATMUL_SAMPLES,
        ),
    )
}
"""The units with streams `i` and `o`, by name."""

_BEATS = {"align": (1, 32)}

BUS_UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit(
            "axis_encoder",
            "the encoder on AXI4-Stream, blocks as packed bytes",
            AxisEncoder,
            {**UNITS["encoder"].choices, "rounding": tuple(map(str, DETERMINISTIC))},
            expected_axis.axis_encoder_items,
            _BEATS,
            "value",
        ),
        Unit(
            "axis_decoder",
            "the decoder on AXI4-Stream, blocks as packed bytes",
            AxisDecoder,
            {**_BLOCK, "dtype": tuple(OUTPUT_DTYPES), **_VIEW},
            expected_axis.axis_decoder_items,
            _BEATS,
            "value",
        ),
        Unit(
            "axis_dot",
            "the dot product on AXI4-Stream, blocks as packed bytes, packets as vectors",
            AxisDot,
            {**_BLOCK, **_VIEW},
            expected_axis.axis_dot_items,
            {**_DOT_SAMPLES, **_BEATS},
        ),
    )
}
"""The units on AXI4-Stream, by name: the others behind a bus."""

ALL_UNITS: Mapping[str, Unit] = {**UNITS, **BUS_UNITS}
"""Every unit, by name."""


def find(name: str) -> Unit:
    """The unit called `name`.

    Raises:
        ValueError: there is none; the message lists the known ones.
    """
    if name not in ALL_UNITS:
        raise ValueError(f"unit must be one of {', '.join(ALL_UNITS)}, not {name!r}")
    return ALL_UNITS[name]


def find_with_streams(name: str) -> Unit:
    """The unit called `name`, which must have streams `i` and `o`.

    Raises:
        ValueError: there is none, or it is on a bus; the message lists those that may be named.
    """
    if name in BUS_UNITS:
        raise ValueError(f"{name} is on AXI4-Stream; unit must be one of {', '.join(UNITS)} here")
    return find(name)
