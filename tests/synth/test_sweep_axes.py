import pytest

from axs6.synth.sweep.axes import parse


def test_ranges_lists_and_names() -> None:
    axes = parse("stages=0..2,5 block=8,32 rounding=nearest,toward_zero", ["encoder"])
    assert axes == {
        "stages": (0, 1, 2, 5),
        "block": (8, 32),
        "rounding": ("nearest", "toward_zero"),
    }
    assert list(axes) == ["stages", "block", "rounding"]


def test_a_range_of_one_and_targets() -> None:
    axes = parse("rows=3..3 target=generic,ecp5", ["matmul"])
    assert axes == {"rows": (3,), "target": ("generic", "ecp5")}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "the expression is empty"),
        ("stages", "'stages' must be NAME=VALUES"),
        ("stages=", "'stages=' must be NAME=VALUES"),
        ("=3", "'=3' must be NAME=VALUES"),
        ("stages=0 stages=1", "stages is given twice"),
        ("stages=two", "stages must be integers and ranges a..b, not 'two'"),
        ("stages=0..", "stages must be integers and ranges a..b, not '0..'"),
        ("stages=-1", "stages must be integers and ranges a..b, not '-1'"),
        ("stages=1,,2", "stages must be integers and ranges a..b, not ''"),
        ("stages=4..0", "stages has the empty range 4..0: write 0..4"),
        ("stages=0..9999999999", "stages must have at most 1,000 values"),
        ("stages=0..2,1", "stages has the value 1 twice"),
        ("block=9", "block must be of 8, 16, 32, not '9'"),
        ("rounding=nearest,up", "rounding must be of nearest, toward_zero, stochastic, not 'up'"),
        ("target=asic", "target must be of generic, sky130, ice40, ecp5, xc7"),
        ("lanes=4", "encoder has no parameter 'lanes'; parameters to sweep are block, dtype,"),
    ],
)
def test_malformed_expressions_name_the_parameter(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^sweep: ") as caught:
        parse(expression, ["encoder"])
    assert message in str(caught.value)


def test_every_unit_must_have_the_parameter() -> None:
    with pytest.raises(ValueError, match="dot has no parameter 'dtype'"):
        parse("dtype=fp32", ["encoder", "dot"])
