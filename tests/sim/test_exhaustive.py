"""Enumerations: a share of every space agrees, and every space finds hardware that is wrong."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Mux

import axs6.hw.decoder.decoder
import axs6.hw.decoder.expander
import axs6.hw.dot.block_dot
import axs6.hw.encoder.encoder
import axs6.hw.encoder.front
import axs6.hw.encoder.modes
import axs6.hw.encoder.random
import axs6.hw.fp32.add
import axs6.hw.fp32.convert
import axs6.hw.fp32.divide
from axs6.golden.formats import AXS6, BF16, FP16, block_format
from axs6.golden.rounding import Rounding
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.fp32.divide import RECIPROCALS
from axs6.sim.exhaustive import encoder_spaces as encoders
from axs6.sim.exhaustive.catalog import all_spaces, choose
from axs6.sim.exhaustive.encoder_spaces import ENCODED, encoder_spaces, maximum_classes
from axs6.sim.exhaustive.runner import Share, SpaceOutcome, run_space
from axs6.sim.exhaustive.scaled_spaces import SCALED
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.state import State

from .counts import COUNTS

THREADS = 2
SHARE = Share(1, 256)

IN_FORMATS = [
    name
    for name in COUNTS
    if any(name.startswith(f"encoder-{fmt}-") for fmt in (*ENCODED, *SCALED))
    or re.match("decoder-(?!fp32|bf16)", name)
]
"""Spaces of encoders and decoders of other formats than AXS-6."""

NUMBERS = "conversion-|aligned-|multiplication-|division-"

BOTH_VIEWS = ("encoder", "decoder", "zeros", "products", "fused", "multiplication")
BOTH = [name for name in COUNTS if name.startswith(BOTH_VIEWS) and name not in IN_FORMATS]
"""Spaces of hardware that has two views."""

IN_WORDS = ("decoder-fp32", "fused-twice", "encoder-fp16-nearest-patterns")
"""Those of them whose behaviour view is tested in every run."""


FEW = ("decoder-vsq4-bf16", "encoder-mx9-bf16-nearest-patterns")
"""Spaces of encoders and decoders of other formats of which every run has a share."""

FEW_NUMBERS = (
    "conversion-int4",
    "aligned-paper",
)
"""Spaces of conversions, multiplications and further divisions of which every run has a share."""

ELSEWHERE = (
    *(name for name in IN_FORMATS if name not in FEW),
    *(name for name in COUNTS if name.startswith("products-")),
    *(name for name in COUNTS if re.match(NUMBERS, name) and name not in FEW_NUMBERS),
    "decoder-bf16",
    "decoder-bf16-high_precision",
    "encoder-bf16-nearest-patterns",
    "encoder-fp16-nearest-patterns",
    "encoder-fp16-nearest-high_precision-patterns",
    "encoder-fp16-stochastic-patterns",
    "encoder-fp32-nearest-patterns",
    *("fused-floor", "fused-zero", "fused-exact"),
    "encoder-fp32-nearest-gaps",
    "encoder-fp32-nearest-subnormals",
    "encoder-bf16-nearest-high_precision-patterns",
    *("masks", "pairs", "zeros", "products"),
    "encoder-bf16-stochastic-patterns",
)
"""Spaces that the slow tests alone have a share of: every run has the same rounding and the same
mode with the other dtype, and this dtype with other roundings and modes. So it has toward zero for
the patterns of fp16 alone. The subnormal numbers of fp32, zeros, random words and products are
spaces where every run finds a wrong unit. Decoders meet every format in tests/hw/decoder, and dot
products in tests/hw/test_block_dot.py."""


def find(name: str, view: str = STRUCTURE) -> Space:
    (space,) = (space for space in all_spaces(view=view) if space.name == name)
    return space


def run(space: Space, folder: Path, share: Share | None = None) -> SpaceOutcome:
    state = State(folder / "state.json")
    state.enter(space)
    return run_space(space, state, share or Share(), THREADS)


def assert_caught(space: Space, folder: Path, *texts: str) -> None:
    """The enumeration stops at a difference that names inputs and both outputs."""
    outcome = run(space, folder)
    assert outcome.compared < space.cases
    assert outcome.difference is not None
    for text in (*texts, "in the RTL", "in the golden model"):
        assert text in outcome.difference


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ELSEWHERE or rounding))
        for name in COUNTS
        for rounding in ["toward_zero" in name and name != "encoder-fp16-toward_zero-patterns"]
    ],
)
def test_a_share_of_every_space_agrees(name: str, tmp_path: Path) -> None:
    space = find(name)
    outcome = run(space, tmp_path, SHARE)
    assert outcome.difference is None
    assert outcome.compared == len(SHARE.chunks(space.chunks)) * space.chunk_cases


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in IN_WORDS else pytest.mark.slow) for name in BOTH],
)
def test_a_share_of_every_space_agrees_in_words(name: str, tmp_path: Path) -> None:
    space = find(f"{name}-behaviour", BEHAVIOUR)
    outcome = run(space, tmp_path, SHARE)
    assert outcome.difference is None
    assert outcome.compared == len(SHARE.chunks(space.chunks)) * space.chunk_cases


def test_every_space_has_the_cases_that_its_formula_says() -> None:
    assert {space.name: space.cases for space in all_spaces()} == COUNTS
    words = {f"{name}-behaviour": COUNTS[name] for name in BOTH}
    assert {space.name: space.cases for space in all_spaces(view=BEHAVIOUR)} == words


def test_an_unknown_view_is_refused() -> None:
    with pytest.raises(ValueError, match="view must be one of structure, behaviour, not 'words'"):
        all_spaces(view="words")


def test_unequal_chunks_are_refused() -> None:
    space = find("products")
    with pytest.raises(ValueError, match="products must have equal chunks, not 10 cases in 3"):
        Space("products", "10", 10, 3, space.design, space.inputs, space.references)


def test_spaces_are_chosen_by_parts_of_their_names() -> None:
    spaces = all_spaces()
    assert choose(spaces, []) == spaces
    names = [space.name for space in choose(spaces, ["bf16", "division"])]
    names = [name for name in names if name not in IN_FORMATS]
    assert names == [
        "decoder-bf16",
        "decoder-bf16-high_precision",
        "division",
        *(f"division-{divisor}" for divisor in RECIPROCALS if divisor != 961),
        "multiplication-bf16",
        "encoder-bf16-nearest-patterns",
        "encoder-bf16-toward_zero-patterns",
        "encoder-bf16-nearest-high_precision-patterns",
        "encoder-bf16-toward_zero-high_precision-patterns",
        "encoder-bf16-stochastic-patterns",
    ]
    with pytest.raises(ValueError, match=r"only must be part of one of decoder-fp32, .*'divider'"):
        choose(spaces, ["division", "divider"])


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(ValueError, match="seed must be an integer of at least 0, not -1"):
        all_spaces(-1)


def without_sticky_bit(m: Module, value: Any, distance: Any, bits: Iterable[int]) -> Any:
    for bit in bits:
        value = Mux(distance[bit], value >> (1 << bit), value)[: len(value)]
    return value


@pytest.mark.parametrize("name", ["addition-corners", "addition-random", "conversion"])
def test_a_shift_without_sticky_bit_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (axs6.hw.fp32.add, axs6.hw.fp32.convert):
        monkeypatch.setattr(part, "shift_right_sticky", without_sticky_bit)
    assert_caught(find(name), tmp_path, "value is 0x")


def test_a_division_whose_truncations_are_not_balanced_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axs6.hw.fp32.divide.Reciprocal, "balance", 0)
    assert_caught(find("division"), tmp_path, "value 0x", "value is 0x")


def test_a_reference_that_is_wrong_is_named(tmp_path: Path) -> None:
    space = find("addition-corners")
    space.references["processor"] = lambda items: {"value": items["a"]}  # type: ignore[index]
    outcome = run(space, tmp_path)
    assert outcome.difference is not None
    assert outcome.difference.endswith("in the processor")


class UnpackHalfDown(axs6.hw.encoder.front.UnpackFloatLane):
    """Takes no power of two for large enough to round up, so its tie goes down."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If((self.value[:23] == 0) & self.normal):
            m.d.comb += self.kept.least.eq(0)
        return m


class UnpackWithOneSignTooMany(axs6.hw.encoder.front.UnpackFloatLane):
    """Makes a single pattern negative."""

    PATTERN = 230 << 23 | 0x2BCDEF

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(self.value == self.PATTERN):
            m.d.comb += self.sign.eq(1)
        return m


class ExponentOneForSubnormals(axs6.hw.encoder.encoder.SharedExponent):
    """Never gives a block of subnormals exponent 0."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(~self.i.rest.normal):
            m.d.comb += self.o.exponent.eq(1)
        return m


@pytest.mark.parametrize(
    ("part", "wrong", "name", "texts"),
    [
        ("UnpackFloatLane", UnpackHalfDown, "gaps", ["0x7f000000"]),
        pytest.param(
            "UnpackFloatLane",
            UnpackWithOneSignTooMany,
            "gaps",
            ["0x732bcdef"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("SharedExponent", ExponentOneForSubnormals, "subnormals", ["block.exponent is 0x"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_wrong_encoder_is_caught(
    part: str,
    wrong: Any,
    name: str,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(encoders.BLOCK_OF_DTYPE, "fp32", 8)
    module = axs6.hw.encoder.front if part == "UnpackFloatLane" else axs6.hw.encoder.encoder
    monkeypatch.setattr(module, part, wrong)
    (space,) = choose(encoder_spaces(Rounding.NEAREST), [f"fp32-nearest-{name}"])
    assert_caught(space, tmp_path, "values [0x", *texts)


class TurnWithoutFractionAt3(axs6.hw.decoder.decoder.TurnLane):
    """Loses the fractions of a single exponent, among those that reach the subnormals."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If((self.scale.high == 0) & (self.scale.low[0] == 3)):
            m.d.comb += self.turned.places.eq(0)
        return m


def test_a_decoder_wrong_at_one_exponent_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axs6.hw.decoder.decoder, "TurnLane", TurnWithoutFractionAt3)
    assert_caught(find("decoder-fp32"), tmp_path, "exponent 0x03", "values[")


class RoundWithoutOneCarry(axs6.hw.encoder.random.RoundRandomlyLane):
    """Does not round up by the largest word where the fraction is the smallest."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If((self.random == 15) & (self.shifted[:4] == 1)):
            m.d.comb += self.code.magnitude.eq(self.shifted[4:])
        return m


class TurnWithoutCode77(axs6.hw.decoder.decoder.TurnLane):
    """Loses one of the codes of seven bits."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        if self._kind.narrow and self._kind.width == 6:
            with m.If(~self.narrow & (self.code.as_value() == 77)):
                m.d.comb += self.turned.places.eq(0)
        return m


class PlaceWrongForOneMask(axs6.hw.decoder.expander.PlaceCodes):
    """Changes a code where one set of eight neighbours is not stored."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(self.i.payload.as_value()[:32] == 0xFF00FFFF):
            m.d.comb += self.o.codes[0].eq(9)
        return m


class PackWithoutLastLane(axs6.hw.encoder.modes.PackSparse):
    """Loses a byte where the first quarter of the lanes is zero and no other."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(self.i.zero == 0x000F):
            m.d.comb += self.o.block.payload[-4].eq(0)
        return m


@pytest.mark.parametrize(
    ("module", "wrong", "name"),
    [
        pytest.param(
            *(axs6.hw.encoder.random, RoundWithoutOneCarry, "encoder-bf16-stochastic-patterns"),
            marks=pytest.mark.slow,
        ),
        (axs6.hw.decoder.decoder, TurnWithoutCode77, "decoder-fp32-high_precision"),
        pytest.param(
            axs6.hw.decoder.expander, PlaceWrongForOneMask, "masks", marks=pytest.mark.slow
        ),
        pytest.param(
            *(axs6.hw.encoder.modes, PackWithoutLastLane, "zeros"), marks=pytest.mark.slow
        ),
    ],
)
def test_wrong_modes_are_caught(
    module: Any, wrong: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = wrong.__mro__[1]
    if right is axs6.hw.decoder.expander.PlaceCodes:
        steps = [wrong if step is right else step for step in module.EXPANDING]
        monkeypatch.setattr(module, "EXPANDING", tuple(steps))
    else:
        monkeypatch.setattr(module, right.__name__, wrong)
    assert_caught(find(name), tmp_path)


def test_one_wrong_product_in_one_lane_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class WrongLane(axs6.hw.dot.block_dot.PartialProductLane):
        def __init__(self) -> None:
            element = AXS6.element
            super().__init__(axs6.hw.dot.lanes.lane_plan(element, element, False))

        def elaborate(self, platform: Any) -> Module:
            m = super().elaborate(platform)
            a, b = self.i.a, self.i.b
            with m.If((a == 0x2B) & (b == 0x15)):
                m.d.comb += self.o.bits[0].eq(0)
            return m

    def wrong_in_lane_21(m: Module, platform: Any, make: Any, lanes: Any) -> None:
        lanes = list(lanes)
        if isinstance(make[0](), axs6.hw.dot.block_dot.PartialProductLane):
            ports = lanes.pop(21)
            m.submodules.wrong = wrong = WrongLane()
            m.d.comb += [wrong.i.eq(ports["i"]), ports["o"].eq(wrong.o)]
        add_lanes(m, platform, make, lanes)

    monkeypatch.setattr(axs6.hw.dot.block_dot, "add_lanes", wrong_in_lane_21)
    zeros = " ".join(["0x00"] * 21)
    assert_caught(
        find("products"),
        tmp_path,
        f"a.codes [{zeros} 0x2b ",
        f"b.codes [{zeros} 0x15 ",
        f"sum is {-230 & 0xFFFF:#x} in the RTL, {-231 & 0xFFFF:#x} in the golden model",
    )


@pytest.mark.parametrize(
    ("format", "raised"),
    [("mxfp8_e4m3", 0), ("mxfp8_e4m3-ceil", 1), ("mxfp8_e4m3-rceil", 1), ("mxfp4-even", 1)],
)
def test_a_rule_that_raises_the_exponent_has_two_classes_a_binade(format: str, raised: int) -> None:
    """Where the code is not held to 0."""
    blocks = block_format(format)
    emax = blocks.element.emax
    found = maximum_classes(BF16, blocks)
    assert len(found) == 1 + 7 + 254 + 2 + raised * (254 - emax + 1)
    if not raised:
        assert len(maximum_classes(FP16, blocks)) == 1 + 10 + 30 + 2
