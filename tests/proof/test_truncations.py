"""`axs6 prove --truncations`: bits that are lost are found, and those that are not are proved."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

import axs6.hw
from axs6.golden.formats import CATALOG
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.registry import UNITS
from axs6.proof.places import MARK, Place
from axs6.proof.truncations import Loss, Truncation, TruncationSurvey
from tests.helpers.sampling import few

OPERANDS = data.StructLayout({"a": 8, "b": 8})


class Dropping(Step):
    """Steps that assign a sum to 8 bits, or another result."""

    def __init__(self) -> None:
        super().__init__(OPERANDS, data.StructLayout({"sum": 8}), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build it."""
        m = Module()
        self.build(m, self.i.a, self.i.b)
        return m


class NarrowSum(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        m.d.comb += self.o.sum.eq(a + b)


class NarrowProductElsewhere(Dropping):
    """A product with a bit too few, through a signal and a choice."""

    def build(self, m: Module, a: Any, b: Any) -> None:
        product = Signal(8)
        m.d.comb += product.eq(a[:5] * b[:4])
        m.d.comb += self.o.sum.eq(Mux(b[7], product, a))


class NamedSum(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        # truncates: a sum that goes round
        m.d.comb += self.o.sum.eq(a + b)


class NamedSumBeside(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        m.d.comb += self.o.sum.eq(a + b)  # truncates: a sum that goes round


class SmallSum(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        m.d.comb += self.o.sum.eq((a & 0x7F) + (b & 0x7F) + 1)


class SignedSum(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        m.d.comb += self.o.sum.eq((a.as_signed() >> 1) + (b.as_signed() >> 1))


class UnreadSum(Dropping):
    def build(self, m: Module, a: Any, b: Any) -> None:
        total = Signal(8)
        m.d.comb += total.eq(a + b)
        m.d.comb += self.o.sum.eq(Mux(a[7] | b[7], 0, total))


class UnreadSumOfSums(Dropping):
    """What loses bits goes through another sum that loses them before a choice leaves it out."""

    def build(self, m: Module, a: Any, b: Any) -> None:
        total, more = Signal(8), Signal(8)
        m.d.comb += [total.eq(a + b), more.eq(total + 1)]
        m.d.comb += self.o.sum.eq(Mux(a[7] | b[7] | more[7], 0, more))


class WholeSum(Dropping):
    """The highest bit is read, so nothing is dropped."""

    def build(self, m: Module, a: Any, b: Any) -> None:
        total = Signal(9)
        m.d.comb += total.eq(a + b)
        m.d.comb += self.o.sum.eq(Mux(total[8], 0xFF, total[:8]))


class CountingSum(Dropping):
    """A register that goes round."""

    def build(self, m: Module, a: Any, b: Any) -> None:
        held = Signal(8)
        m.d.sync += held.eq(held + 1)
        m.d.comb += self.o.sum.eq(held ^ a ^ b)


def survey(step: type[Dropping]) -> list[Truncation]:
    return [*TruncationSurvey(Pipeline([step()], 0), {}, 20)]


@pytest.mark.parametrize("step", [NarrowSum, NarrowProductElsewhere])
def test_a_result_that_is_too_wide_is_caught_with_an_input(step: type[Dropping]) -> None:
    """The survey runs the input in the batch simulator too, and refuses another result there."""
    (found,) = survey(step)
    assert found.loss is Loss.LOST
    assert found.place.source.startswith("test_truncations.py:")
    assert found.item is not None
    a, b = (int(found.item[name][0]) for name in "ab")
    assert found.value == (a + b if step is NarrowSum else (a & 31) * (b & 15))
    assert found.value >> found.place.kept
    assert (found.place.kept, found.place.width) == (8, 9)
    assert found.to_dict()["item"] == {"a": a, "b": b}


@pytest.mark.parametrize(
    ("step", "loss", "reason"),
    [
        (SmallSum, Loss.NONE, "they are 0"),
        (SignedSum, Loss.NONE, "they are copies of the sign"),
        (UnreadSum, Loss.UNREAD, "they are 0 where it is read"),
        (NamedSum, Loss.INTENDED, "a sum that goes round"),
        (NamedSumBeside, Loss.INTENDED, "a sum that goes round"),
    ],
)
def test_what_is_not_lost_is_proved(step: type[Dropping], loss: Loss, reason: str) -> None:
    assert {(each.loss, each.reason) for each in survey(step)} == {(loss, reason)}


def test_a_result_that_no_output_depends_on_is_found_behind_other_operators() -> None:
    assert {each.loss for each in survey(UnreadSumOfSums)} == {Loss.UNREAD}


def test_a_bit_that_is_read_is_not_dropped() -> None:
    assert survey(WholeSum) == []


def test_registers_may_have_any_value() -> None:
    (found,) = survey(CountingSum)
    assert found.loss is Loss.LOST
    assert found.value == 256
    assert len(found.registers) == 8


def test_time_that_is_over_is_not_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that gives up leaves the place unknown."""
    monkeypatch.setattr(TruncationSurvey, "_ask", lambda *_, **__: None)
    assert [each.loss for each in survey(UnreadSum)] == [Loss.UNKNOWN]


QUICK: list[tuple[str, dict[str, Any]]] = [
    ("block_dot", {"format": "mxfp4", "block": 8}),
    ("decoder", {"block": 8}),
    ("decoder", {"format": "mxfp8_e4m3", "block": 8}),
    ("encoder", {"format": "mxint8", "block": 8}),
]


@pytest.mark.parametrize(("unit", "parameters"), QUICK, ids=str)
def test_units_lose_bits_only_for_a_reason(unit: str, parameters: dict[str, Any]) -> None:
    found = [*TruncationSurvey(unit, parameters, 60)]
    assert found
    assert {each.loss for each in found} <= {Loss.NONE, Loss.UNREAD, Loss.INTENDED}
    assert [each.to_dict() for each in found if each.loss is Loss.LOST] == []


def designs() -> list[tuple[str, dict[str, Any]]]:
    """Units in formats in which every property of a format is met, in blocks as small as can be."""
    found = []
    for unit, entry in UNITS.items():
        tile = {name: 1 for name in ("rows", "columns") if name in entry.defaults}
        if "format" not in entry.defaults:
            found.append((unit, {"block": 8}))
            continue
        for name in few(CATALOG, 1):
            for block in (8, 16, 64):
                parameters = {"format": name, "block": block, **tile}
                try:
                    entry.build(**parameters)
                except ValueError:
                    continue
                found.append((unit, parameters))
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "parameters"), designs(), ids=str)
def test_every_unit_loses_bits_only_for_a_reason(unit: str, parameters: dict[str, Any]) -> None:
    lost = [each for each in TruncationSurvey(unit, parameters, 300) if each.loss is Loss.LOST]
    assert [each.to_dict() for each in lost] == []


NAMED: list[tuple[str, dict[str, Any]]] = [
    ("decoder", {"format": "mx9"}),
    ("decoder", {"format": "if4"}),
    ("decoder", {"view": "behaviour"}),
    ("dot", {"format": "nvfp4"}),
    ("dot", {"interleave": 4}),
    ("dot", {"format": "fp8_e4m3fnuz", "accumulator": "cdna3"}),
    ("encoder", {"format": "int4"}),
    ("encoder", {"format": "nvfp4"}),
]
"""Designs that have every place with a reason, beside the quick ones."""


@pytest.mark.slow
def test_every_reason_is_that_of_a_place() -> None:
    """A reason that no place needs any longer goes."""
    used = set()
    for unit, parameters in [*QUICK, *NAMED]:
        used |= {x.reason for x in TruncationSurvey(unit, {"block": 8, **parameters}, 300)}
    sources = Path(axs6.hw.__file__).parent.rglob("*.py")
    lines = [line.strip() for path in sources for line in path.read_text().splitlines()]
    given = {found[1] for line in lines if (found := MARK.search(line))}
    assert given <= used


DECODER = ("prove", "decoder", "--format", "mxfp8_e4m3", "--block", "8", "--truncations")


def test_the_command_lists_places(main: Any) -> None:
    done = main(*DECODER, "--json", "places.json", "--csv", "places.csv")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^intended: axs6/hw/decoder/value\.py:\d+: shr of 24 bits", done.stdout, re.M)
    found = json.loads(Path("places.json").read_text())
    assert found["unit"] == "decoder"
    assert len(found["truncations"]) == len(done.stdout.splitlines()) == 7
    assert Path("places.csv").read_text().startswith("verdict,source,operator,signal,kept")


def test_the_command_fails_where_bits_are_lost(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason that is taken away."""
    monkeypatch.setattr(Place, "reason", "")
    done = main(*DECODER)
    assert done.returncode == 1
    assert "loses bits: axs6/hw/decoder/value.py:" in done.stdout
    assert "shown by 0x" in done.stdout
    assert " where exponent = " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("decoder", "--target", "sky130"), "is about RTL without registers: not with --target"),
        (("decoder", "--stages", "1"), "is about RTL without registers: not with --stages"),
        (("fp32_add",), "unit must be one of block_dot"),
        (("axis_dot",), "axis_dot is on AXI4-Stream"),
        (("decoder", "--format", "none"), "none"),
    ],
)
def test_bad_arguments_are_one_line(main: Any, arguments: tuple[str, ...], said: str) -> None:
    done = main("prove", *arguments, "--truncations")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("axs6: ")
