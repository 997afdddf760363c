"""The bound of the QSNR."""

import numpy as np
import pytest

from axs6.golden import block_format, qsnr
from axs6.golden.check.exact.formats import CATALOG as DEFINITIONS
from axs6.golden.check.exact.formats import Definition, Exponent
from axs6.golden.formats import CATALOG
from axs6.golden.metrics import qsnr_bound

BOUNDED = [name for name in CATALOG if qsnr_bound(name) is not None]


@pytest.mark.parametrize(("bits", "k1", "k2", "d2"), [(8, 16, 2, 1), (5, 32, 4, 2), (3, 16, 1, 3)])
def test_the_bound_is_that_of_the_paper(bits: int, k1: int, k2: int, d2: int) -> None:
    gain = 2 ** (2 * (2**d2 - 1))
    paper = 6.02 * (bits - 1) + 10 * np.log10(gain / (k1 + (gain - 1) * k2))
    assert qsnr_bound(f"int{bits}_e8m0_t{k1}s{k2}o{d2}") == pytest.approx(paper, abs=0.01)


def has_bound(definition: Definition) -> bool:
    """Whether a format is as in Theorem 1: fixed point with signs, shifts at most in one level."""
    *shifts, top = definition.levels
    return (
        not definition.element.floating
        and definition.element.values[-1] != definition.element.largest
        and isinstance(top, Exponent)
        and isinstance(top.group, int)
        and top.rule == "floor"
        and len(shifts) < 2
    )


def test_formats_with_a_bound() -> None:
    assert [name for name, each in DEFINITIONS.items() if has_bound(each)] == BOUNDED
    assert {"axs6", "mx9", "mxint8", "msfp12"} <= set(BOUNDED)
    assert not {"int8", "nvfp4", "mxfp8_e4m3", "vsq4"} & set(BOUNDED)
    for name in ("mx9-ceil", "int8_e8m0_t16s8o1s2o1", "int8_e8m0_t0", "e4m3fn_e8m0_t8"):
        assert qsnr_bound(name) is None


@pytest.mark.parametrize("name", BOUNDED)
def test_no_values_fall_below_and_the_worst_come_near(name: str) -> None:
    fmt = block_format(name)
    bound = qsnr_bound(fmt)
    assert bound is not None
    rng = np.random.default_rng(1)
    for values in (
        rng.standard_normal((50, 256)),
        np.exp(3 * rng.standard_normal((50, 256))),
        np.where(rng.random((50, 256)) < 0.05, 1000, 1) * rng.standard_normal((50, 256)),
    ):
        for row in values.astype(np.float32):
            assert qsnr(row, fmt) >= bound
    # A largest value at the foot of its binade, and errors of half a unit everywhere else.
    foot, unit = 2.0**fmt.element.emax, float(fmt.element.unit)
    size = int(fmt.levels[0].group) if fmt.shifts else 1
    shift = fmt.levels[0].scale.smallest if fmt.shifts else 1
    worst = np.full(fmt.block, unit / 2 * float(shift) * (1 - 1e-6))
    worst[:size] = unit / 2 * (1 - 1e-6)
    worst[0] = foot * (1 + 1e-6)
    assert bound <= qsnr(worst.astype(np.float32), fmt) < bound + 2
