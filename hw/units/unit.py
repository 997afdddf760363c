"""Description of a hardware unit: component, parameters, input items and expected outputs."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from amaranth.lib import wiring
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.accumulator import ACCUMULATORS, accumulator
from axs6.golden.formats import AXS6, BlockFormat, name_of, operand_formats, operands_name
from axs6.golden.lfsr import PERIOD
from axs6.golden.pack import ALIGN_MAX
from axs6.golden.rounding import RANDOM_BITS_MAX
from axs6.hw.core.layouts import fields
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE, block_of
from axs6.hw.dot.matmul import MOST_SIDE
from axs6.hw.fp32.accumulator import MOST_INTERLEAVED

Items = dict[str, NDArray[Any]]
"""Items of a stream: an array for each field of the payload, its first axis the items."""

Fields = Mapping[str, NDArray[Any]]
"""Items that are only read."""

Parameters = Mapping[str, Any]

Choices = Mapping[str, tuple[Any, ...]]

LARGEST = {
    "interleave": MOST_INTERLEAVED,
    "random_bits": RANDOM_BITS_MAX,
    "lfsr_seed": PERIOD,
    "align": ALIGN_MAX,
    "rows": MOST_SIDE,
    "columns": MOST_SIDE,
}
"""Largest values of parameters that are integers from 1 on."""


TEXTS = {"format": "any block format", "accumulator": "any accumulator"}
"""Descriptions of the parameters that are strings."""


def option_words(chosen: Parameters, usual: Parameters) -> list[str]:
    """The words of a command line for what is not as usual, in order."""
    return [
        word
        for name, value in chosen.items()
        if value != usual[name]
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit of hardware. All that the project knows of it is here, in one file for each.

    Args:
        name: name on the command line.
        summary: what it does, in one line.
        component: class of the component; its keyword arguments are the unit's parameters.
        values: gives the values that each parameter with a fixed set of them may take, for the
            block formats of the operands.
        golden: gives the output items that the unit must produce for input items and parameters.
        corners: gives the special cases among input items, always the same ones.
        random: gives a number of random input items.
        samples: values of the parameters without such a set that regressions use, but `stages`.
        operation: what it does for each value of a block and lane: "MAC", or "value" where it
            converts them or makes them.
        remembers: whether an output depends on all items since reset.
        blocks: whether blocks go in or come out, which have a format.
        bus: whether the streams are AXI4-Stream, another unit behind a bus.
        needs: for a parameter that keeps its default unless another one has a certain value, the
            name of that one and the value.
    """

    name: str
    summary: str
    component: Callable[..., wiring.Component]
    values: Callable[[Sequence[BlockFormat]], Choices]
    golden: Callable[[Fields, Parameters], Items]
    corners: Callable[[Parameters], Items]
    random: Callable[[Parameters, Generator, int], Items]
    samples: Choices = field(default_factory=dict)
    operation: str = "MAC"
    remembers: bool = False
    blocks: bool = True
    bus: bool = False
    needs: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters and their default values, in the order of the component's signature."""
        return self._defaults({})

    def _defaults(self, given: Parameters) -> dict[str, Any]:
        """The default values; the default of `block` is what the formats have, unless one is given.

        Raises:
            ValueError: as of `block_of`.
        """
        signature = inspect.signature(self.component).parameters
        found = {name: parameter.default for name, parameter in signature.items()}
        own = block_of(self.formats(given), given.get("block"))
        return {**found, "block": found["block"] or own}

    def formats(self, given: Parameters) -> tuple[BlockFormat, ...]:
        """The block formats of the operands that `format` names; AXS-6 where there is no choice.

        Raises:
            ValueError: a string is no block format.
        """
        signature = inspect.signature(self.component).parameters
        if "format" not in signature:
            return (AXS6,)
        return operand_formats(given.get("format", signature["format"].default))

    def choices(self, given: Parameters) -> Choices:
        """The values of each parameter with a fixed set of them, beside the given ones."""
        return self.values(self.formats(given))

    def parameters(self, given: Parameters) -> dict[str, Any]:
        """All parameters, the given ones in place of their defaults.

        Formats and accumulators are the strings that they print as; names of accumulators stay,
        of which several may be for the same one.

        Raises:
            ValueError: the unit has no such parameter, or it means nothing beside the others.
        """
        formats = self.formats(given)
        found = self._defaults(given)
        for name in given:
            if name not in found:
                known = ", ".join(found)
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {known}")
        found |= given
        if "format" in found:
            found["format"] = operands_name(formats)
        if "accumulator" in found:
            text = found["accumulator"]
            found["accumulator"] = text if text in ACCUMULATORS else str(accumulator(text))
        for name, (other, value) in self.needs.items():
            if found[name] != self.defaults[name] and not self.takes(name, found):
                raise ValueError(f"{name} is for {other} {value}, not {found[other]}")
        return found

    def options(self, given: Parameters) -> list[str]:
        """The words of a command line that choose these parameters, without those of defaults.

        Raises:
            ValueError: as of `parameters`.
        """
        found, usual = self.parameters(given), self.parameters({})
        blocks = {fmt.block for fmt in self.formats(given)}
        own = inspect.signature(self.component).parameters["block"].default
        usual["block"] = own or (blocks.pop() if len(blocks) == 1 else None)
        return option_words(found, usual)

    def takes(self, name: str, given: Parameters) -> bool:
        """Whether a parameter may have another value than its default beside the given ones."""
        if name not in self.needs:
            return True
        other, value = self.needs[name]
        return bool(given.get(other, self.defaults[other]) == value)

    def simulated(self, given: Parameters) -> dict[str, Any]:
        """All parameters where a simulator runs the unit: the behaviour view is the default.

        Raises:
            ValueError: as of `parameters`.
        """
        return self.in_view(BEHAVIOUR, given)

    def in_view(self, view: str, given: Parameters) -> dict[str, Any]:
        """All parameters; where none is given, a unit with two views has this one.

        Raises:
            ValueError: as of `parameters`.
        """
        chosen = {"view": view} if self.has_views(given) else {}
        return self.parameters({**chosen, **given})

    def suited_view(self, *, dsps: bool) -> str:
        """The view that is smaller as a rule.

        Products become DSP blocks from words alone, and only those of lanes are worth it: decoders
        in words have products with constants, which take more than gates.

        Args:
            dsps: whether there are DSP blocks.
        """
        return BEHAVIOUR if dsps and self.operation == "MAC" else STRUCTURE

    def has_views(self, given: Parameters) -> bool:
        """Whether the datapath has two views beside these parameters."""
        return len(self.choices(given).get("view", ())) > 1

    def combinations(self, given: Parameters) -> list[dict[str, Any]]:
        """Values of `choices` for tests: few, but any two values of two parameters meet in one.

        The defaults come first. Parameters in `given` keep their value.
        """
        defaults, choices = self.parameters(given), self.choices(given)
        values = [
            [given[name]] if name in given else sorted(known, key=defaults[name].__ne__)
            for name, known in choices.items()
        ]
        rows = [dict(zip(choices, row, strict=True)) for row in product(*values)]
        missing = set().union(*map(_pairs, rows))
        found = []
        while missing:
            found.append(max(rows, key=lambda row: len(_pairs(row) & missing)))
            missing -= _pairs(found[-1])
        return found

    def most_stages(self, given: Parameters) -> int:
        """The largest `stages` with these parameters."""
        component: Any = self.build(**{**given, "stages": 0})
        return int(component.most_stages)

    def in_format(self, given: Parameters) -> Parameters:
        """The block format among some parameters, if the unit has one to choose.

        Raises:
            ValueError: the unit takes no other than the default one, and that is another.
        """
        if "format" in given and "format" not in self.defaults:
            text = given["format"] if self.blocks else name_of(AXS6)
            if operands_name(operand_formats(text)) != name_of(AXS6):
                raise ValueError(f"{self.name} takes only {name_of(AXS6)}, not {text}")
            return {name: value for name, value in given.items() if name != "format"}
        return given

    def allowed(self, name: str, most_stages: int, given: Parameters) -> str:
        """The values that a parameter may take beside the given ones, in a few characters."""
        choices = self.choices(given)
        if name in choices:
            return "|".join(map(str, choices[name]))
        if name == "stages":
            return f"0..{most_stages}"
        if name in TEXTS:
            return TEXTS[name]
        return f"1..{LARGEST[name]}"

    def inputs(self, given: Parameters) -> list[str]:
        """Names of the fields of an input item."""
        component: Any = self.build(**given)
        return [each.name for each in fields(component.i.payload.shape())]

    def build(self, **given: Any) -> wiring.Component:
        """The component with these parameters.

        Raises:
            ValueError: a parameter is unknown or has a value that the unit cannot take.
        """
        return self.component(**self.parameters(given))


def _pairs(row: Parameters) -> set[tuple[Any, ...]]:
    """Pairs of values; the one value where there are no two."""
    return set(combinations(row.items(), min(2, len(row))))
