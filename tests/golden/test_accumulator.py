import re

import pytest

from axs6.golden.accumulator import ACCUMULATORS, Accumulator, Alignment, accumulator
from axs6.golden.check.exact import accumulator as exact
from axs6.golden.formats import BF16, FP32, Float, Specials
from axs6.golden.rounding import Rounding


def test_default_is_fp32():
    assert accumulator("fp32") == Accumulator() == ACCUMULATORS["fp32"]
    assert Accumulator().output == FP32
    assert accumulator("exact").output is None


def test_tensor_cores_as_published():
    fields = {
        "volta": (4, 23, 23),
        "turing": (8, 24, 23),
        "ampere": (8, 24, 23),
        "hopper": (16, 25, 23),
        "ada_fp8": (16, 13, 13),
        "hopper_fp8": (32, 13, 13),
        "blackwell": (32, 25, 23),
        "blackwell_mx": (32, 25, 23),
        "blackwell_fp4": (64, 35, 23),
    }
    for name, (lanes, fraction, kept) in fields.items():
        core = ACCUMULATORS[name]
        assert (core.reduction, core.fraction) == (lanes, fraction)
        assert core.output == Float(8, kept)
        assert core.rounding is Rounding.TOWARD_ZERO
        assert core.alignment is Alignment.ZERO
        assert core.fused
        assert core.nan == 0x7FFFFFFF
        assert core.term == (16 if name == "blackwell_fp4" else None)


def test_named_accumulators_have_the_steps_of_the_exact_model():
    assert ACCUMULATORS.keys() == exact.ACCUMULATORS.keys()
    for name, found in ACCUMULATORS.items():
        public = exact.ACCUMULATORS[name]
        output = public.output
        assert found == Accumulator(
            public.reduction,
            public.fraction,
            Alignment.ZERO if public.toward_zero else Alignment.FLOOR,
            public.least,
            public.fused,
            None if public.wide else Float(*output.fields),
            Rounding.TOWARD_ZERO if output.toward_zero else Rounding.NEAREST,
            public.promote,
            None if public.joined == 1 else public.joined,
            public.nan,
            public.keeps_minus,
            public.total_fraction,
            public.groups,
            public.reach,
            public.pairs,
            public.normal,
            public.scaled,
        )


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_a_name_reads_back(name):
    assert accumulator(str(ACCUMULATORS[name])) == ACCUMULATORS[name]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("paper,fraction=25", {"reduction": 64, "fraction": 25}),
        ("fp32,fused=true,output=bf16", {"fused": True, "output": BF16}),
        ("fp32,output=e8m13,promote=4", {"output": Float(8, 13), "promote": 4}),
        ("fp32,fraction=9,least=-20", {"fraction": 9, "least": -20}),
        ("fp32,fraction=9,alignment=zero", {"fraction": 9, "alignment": Alignment.ZERO}),
        ("fp32,rounding=toward_zero,nan=0x7fffffff", {"rounding": "toward_zero", "nan": 2**31 - 1}),
    ],
)
def test_fields_in_a_string(text, fields):
    assert accumulator(text) == Accumulator(**fields)
    assert str(accumulator(text)) == text


def test_a_field_of_a_named_one_changes():
    promoted = accumulator("hopper_fp8,promote=4")
    assert promoted != ACCUMULATORS["hopper_fp8"]
    assert accumulator(str(promoted)) == promoted
    assert accumulator("exact,output=fp32") == Accumulator()
    assert accumulator("hopper,reduction=none").reduction is None


def test_it_is_plain_data():
    assert accumulator(Accumulator(promote=2)) == Accumulator(promote=2)
    assert {ACCUMULATORS[name] for name in ("turing", "ampere")} == {ACCUMULATORS["turing"]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reduction": 0}, "reduction must be an integer from 1 to 4096, not 0"),
        ({"fraction": 49}, "fraction must be an integer from 0 to 48, not 49"),
        ({"fraction": -1}, "fraction must be an integer from 0 to 48, not -1"),
        ({"promote": 0}, "promote must be an integer of at least 1, not 0"),
        ({"alignment": "up"}, "alignment must be one of floor, zero, not 'up'"),
        ({"rounding": "stochastic"}, "rounding must be one of nearest, toward_zero, not 'stochas"),
        ({"fused": 1}, "fused must be True or False, not 1"),
        ({"nan": FP32.infinity}, "nan must be an integer from 2139095041 to 2147483647, not 2139"),
        ({"term": 16}, "term needs a fraction, to which terms are aligned"),
        ({"least": -133}, "least needs a fraction, to which terms are aligned"),
        ({"least": 1025, "fraction": 9}, "least must be an integer from -1024 to 1024, not 1025"),
        ({"least": -9, "fraction": 9, "output": None}, "output=None cannot be combined with least"),
        ({"minus_zero": True}, "minus_zero needs fused, "),
        ({"sum_fraction": 31}, "sum_fraction needs a fraction, to which terms are aligned"),
        ({"sum_fraction": 31, "fraction": 24}, "sum_fraction needs fused, "),
        ({"groups": 2}, "groups needs sum_fraction, "),
        ({"reach": 2}, "reach needs sum_fraction, "),
        ({"flush": -14}, "flush needs pairwise, "),
        ({"pairwise": True, "fraction": 4}, "pairwise cannot be combined with fraction, fused or"),
        (
            {"sum_fraction": 24, "fraction": 24, "fused": True},
            "sum_fraction must be 25 or more and fraction 23 or more for this output, not 24 and",
        ),
        (
            {"sum_fraction": 31, "fraction": 24, "fused": True, "least": -9},
            "least cannot be combined with sum_fraction or groups",
        ),
        (
            {"sum_fraction": 31, "fraction": 24, "fused": True, "groups": 2, "term": 16},
            "term cannot be combined with sum_fraction or groups",
        ),
        (
            {"reduction": 9, "sum_fraction": 31, "fraction": 24, "fused": True, "groups": 2},
            "groups must divide reduction 9, not 2",
        ),
        (
            {"output": None, "fused": True},
            "output=None cannot be combined with fused or promote, which round",
        ),
        (
            {"output": None, "promote": 1},
            "output=None cannot be combined with fused or promote, which round",
        ),
        ({"output": "fp32"}, "output must be a Float or None, not 'fp32'"),
        (
            {"output": Float(11, 20)},
            "output must have an infinity, and only values that FP32 has, not e",
        ),
        (
            {"output": Float(8, 24)},
            "output must have an infinity, and only values that FP32 has, not e8m24",
        ),
        (
            {"output": Float(8, 23, exponent_bias=128)},
            "output must have an infinity, and only values that FP32 has, not ",
        ),
        (
            {"output": Float(4, 3, Specials.NAN)},
            "output must have an infinity, and only values that ",
        ),
    ],
)
def test_wrong_fields(fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Accumulator(**fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tree", "accumulator must be one of fp32, exact, paper, volta, "),
        ("", "accumulator must be one of fp32, "),
        ("fp32,promote", "accumulator needs field=value with one of the fields reduction, "),
        ("fp32,promote=4,promote=8", "accumulator must have promote only once"),
        ("fp32,bits=3", "accumulator needs field=value with one of the fields reduction, "),
        ("fp32,promote=often", "promote must be an integer of at least 1, not 'often'"),
        ("fp32,output=fp64", "output must be a Float or None, not 'fp64'"),
    ],
)
def test_wrong_strings(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        accumulator(text)


def test_what_is_no_accumulator():
    message = r"^accumulator must be a string or an Accumulator, not int$"
    with pytest.raises(TypeError, match=message):
        accumulator(32)
