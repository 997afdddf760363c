"""All proofs, mutation scores and enumerations of the project, each a command of its own.

`axs6 verify` runs these commands; see `axs6.proof.campaign_results`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from inspect import signature
from itertools import count, islice
from typing import Any

from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.formats import AXS6, ROW_FORMATS, name_of
from axs6.hw.core.layouts import port_fields
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.registry import UNITS
from axs6.hw.units.unit import Unit
from axs6.proof.buses import BEHIND
from axs6.proof.components import COMPONENTS, proof_of
from axs6.proof.items import one_item_each
from axs6.proof.prove import UnitProof
from axs6.proof.specifications import SPECIFICATIONS
from axs6.sim.exhaustive.runner import Share

BLOCK = 8
"""Lanes of the units of which mutants are made, where their formats have so few."""

FORMATS = ("fp8_e4m3", *ROW_FORMATS)
"""Each accumulator is proved in the first of these that goes with it: elements have exponents."""


class Kind(StrEnum):
    """What a check does, by the name of its command."""

    PROVE = "prove"
    MUTATE = "mutate"
    ENUMERATE = "validate"


@dataclass(frozen=True)
class Check:
    """A command, and the place of its outcome in the report.

    Args:
        kind: what it does. unit: name of a unit or of a part of one; "" for all units.
        format: name of the block format. options: of the command, by names of parameters; one that
        is True takes no value.
    """

    kind: Kind
    unit: str
    format: str
    options: Mapping[str, Any]

    @property
    def arguments(self) -> list[str]:
        """Of `axs6`."""
        words = []
        for name, value in self.options.items():
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return [self.kind, *([self.unit] if self.unit else []), *words]

    @property
    def command(self) -> str:
        """The command line that repeats the check."""
        return " ".join(["axs6", *self.arguments])


def checks() -> list[Check]:
    """Every check, in the order of units and formats."""
    proofs = [*_proofs(), *_components(), *_queues(), *_buses(), *_netlists()]
    return [*proofs, *_mutants(), *_spaces()]


@cache
def formats_of(unit: str) -> tuple[str, ...]:
    """Names of the formats that a unit takes, or the default one where there is none to choose."""
    entry = UNITS[unit]
    if "format" not in entry.defaults or not entry.blocks:
        return (str(entry.defaults.get("format", name_of(AXS6))),)
    found = [name for name in ROW_FORMATS if _builds(entry, format=name)]
    return tuple(found or [str(entry.defaults["format"])])


def _builds(entry: Unit, **parameters: Any) -> bool:
    try:
        entry.build(**parameters)
    except ValueError:
        return False
    return True


def _check(kind: Kind, unit: str, format: str, **options: Any) -> Check:
    """A check of a unit; options are named as parameters are."""
    has_format = unit not in UNITS or "format" in UNITS[unit].defaults
    return Check(
        kind, unit, format, {**({"format": format} if has_format and format else {}), **options}
    )


def _views(unit: str, format: str) -> list[dict[str, str]]:
    """Both views; of sums over vectors in other formats than the first one view."""
    several = "view" in UNITS[unit].defaults
    if format != formats_of(unit)[0] and not _alone(unit):
        several = False
    return [{}, {"view": BEHAVIOUR}] if several else [{}]


@cache
def _alone(unit: str) -> bool:
    """Whether outputs depend on one item each."""
    entry = UNITS[unit]
    inputs, _ = port_fields(entry.build())
    return one_item_each(entry, inputs)


def _proofs() -> Iterator[Check]:
    """Each unit with a specification against it, in each format and view, and accumulator."""
    for unit in SPECIFICATIONS:
        for name in formats_of(unit):
            if not unproved(unit, name):
                for view in _views(unit, name):
                    yield _check(Kind.PROVE, unit, name, **view)
        if "accumulator" in UNITS[unit].defaults:
            for accumulator, name in _formats_of_accumulators(unit):
                default = accumulator == UNITS[unit].defaults["accumulator"]
                if not default and not unproved(unit, name, accumulator=accumulator):
                    yield _check(Kind.PROVE, unit, name, accumulator=accumulator)


@cache
def _formats_of_accumulators(unit: str) -> tuple[tuple[str, str], ...]:
    """Each accumulator with the first format in which a unit has it."""
    found = []
    for accumulator in ACCUMULATORS:
        built = (x for x in FORMATS if _builds(UNITS[unit], format=x, accumulator=accumulator))
        found += [(accumulator, name) for name in islice(built, 1)]
    return tuple(found)


@cache
def unproved(unit: str, format: str, **parameters: Any) -> str:
    """Why a unit is not held to what a format defines for all inputs; nothing if it is."""
    given = {"format": format} if "format" in UNITS[unit].defaults else {}
    try:
        return UnitProof(unit, {**given, **parameters}).unspecified
    except ValueError as error:
        return str(error)


def all_unproved() -> Iterator[str]:
    """Units and formats with no such proof, and why."""
    for unit in UNITS:
        names = formats_of(unit)
        for name in names if unit in SPECIFICATIONS else names[:1]:
            if reason := unproved(unit, name):
                yield f"{unit}{f' in {name}' if unit in SPECIFICATIONS else ''}: {reason}"


def _components() -> Iterator[Check]:
    """Parts of units in each format, and then with each accumulator."""
    for component, make in COMPONENTS.items():
        known = signature(make).parameters
        for name in ROW_FORMATS if "format" in known else ("",):
            if _component(component, name):
                yield _check(Kind.PROVE, component, name)
        if "accumulator" in known:
            for accumulator, name in _formats_of_accumulators(_summing()):
                if _component(component, name, accumulator=accumulator):
                    yield _check(Kind.PROVE, component, name, accumulator=accumulator)


def _summing() -> str:
    """The unit that has an accumulator."""
    return next(unit for unit, entry in UNITS.items() if "accumulator" in entry.defaults)


@cache
def _component(name: str, format: str, **parameters: Any) -> bool:
    """Whether there is a component in a format."""
    try:
        proof_of(name, {**({"format": format} if format else {}), **parameters})
    except ValueError:
        return False
    return True


def _queues() -> Iterator[Check]:
    """Each unit that is a function behind a queue, or adds up vectors, with one, two and the most
    stages."""
    for unit, entry in UNITS.items():
        if "stages" in entry.defaults and (_alone(unit) or unit in SPECIFICATIONS):
            name = formats_of(unit)[0]
            for stages in sorted({1, 2, entry.most_stages({})}):
                yield _check(Kind.PROVE, unit, name, stages=stages)


def _buses() -> Iterator[Check]:
    """Units on AXI4-Stream, without registers and with some."""
    for unit in BEHIND:
        for stages in (0, 1, 2):
            yield Check(Kind.PROVE, unit, name_of(AXS6), {"stages": stages})


def _netlists() -> Iterator[Check]:
    """Netlists of cells: of block dot products in each format, and of the others in the first."""
    for unit in SPECIFICATIONS:
        names = formats_of(unit)
        each = UNITS[unit].operation == "MAC" and _alone(unit)
        for name in names if each else names[:1]:
            yield _check(Kind.PROVE, unit, name, target="sky130")


def _few_lanes(unit: str, format: str) -> int:
    """Lanes of a unit of which mutants are made: `BLOCK`, or the next power of two that it has."""
    given = {"format": format} if "format" in UNITS[unit].defaults else {}
    blocks = (BLOCK << k for k in count())
    return next(block for block in blocks if _builds(UNITS[unit], **given, block=block))


def _mutants() -> Iterator[Check]:
    """Mutants of each unit: in each format and view, with all parameters, and accumulators."""
    for unit, entry in UNITS.items():
        names = formats_of(unit)
        for name in names:
            for view in _views(unit, name):
                yield _check(Kind.MUTATE, unit, name, block=_few_lanes(unit, name), **view)
        for row in entry.combinations({"block": BLOCK})[1:]:
            stages = {"stages": 2} if "stages" in entry.defaults else {}
            yield _check(Kind.MUTATE, unit, names[0], **row, **stages)
    summing = _summing()
    for accumulator in ACCUMULATORS:
        options = {"accumulator": accumulator, "block": BLOCK}
        for name in ROW_FORMATS:
            if _builds(UNITS[summing], format=name, **options):
                yield _check(Kind.MUTATE, summing, name, **options)
                break


def _spaces() -> Iterator[Check]:
    """What is enumerated by simulation."""
    yield Check(Kind.ENUMERATE, "", "", {"exhaustive": True})


def choose(found: Sequence[Check], parts: Sequence[str], share: Share) -> list[Check]:
    """The checks with one of some texts in their command, and of these part N of M.

    Raises:
        ValueError: a text is in none.
    """
    for part in parts:
        if not any(part in each.command for each in found):
            raise ValueError(f"no check has {part!r} in its command")
    chosen = [x for x in found if not parts or any(part in x.command for part in parts)]
    return chosen[share.number - 1 :: share.of]
