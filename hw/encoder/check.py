"""Which formats encoders in words can give."""

from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Integer,
    Real,
    SignMagnitude,
    name_of,
)
from axs6.hw.core.parameters import BLOCKS


def check_format(fmt: BlockFormat, lanes: int, unit: str) -> None:
    """Raise ValueError, saying what has no hardware, for a format that encoders cannot give.

    Args:
        fmt: the block format.
        lanes: values of an item.
        unit: name of the unit.
    """
    missing = _missing(fmt)
    if missing is not None:
        raise ValueError(f"{unit} has no hardware for {missing}, which {name_of(fmt)} has")
    if lanes not in BLOCKS:
        known = ", ".join(map(str, BLOCKS))
        raise ValueError(f"block must be one of {known}, not {lanes}")
    element, codes = fmt.element, [level.scale.nan_code for level in fmt.levels]
    no_code = codes == [None] * len(codes)
    if element.has_nan and not element.has_infinity and no_code:
        raise ValueError(
            f"{unit} has no hardware for {name_of(fmt)}, in which infinities have no code"
        )
    if fmt.exponent is None and not fmt.has_nan:
        raise ValueError(f"{unit} has no hardware for {name_of(fmt)}, in which NaN has no code")


def _missing(fmt: BlockFormat) -> str | None:
    """What of a format has no hardware."""
    if not fmt.element.signed:
        return "zero points"
    if fmt.has_modes:
        return "modes"
    scales = [level.scale for level in fmt.levels]
    if fmt.exponent is None:
        return _missing_of_real(fmt)
    if any(isinstance(scale, Real | Integer) for scale in scales):
        return "an exponent under real scales"
    if fmt.outer:
        return f"the exponent of a {fmt.outer[0].group}"
    return None


def _missing_of_real(fmt: BlockFormat) -> str | None:
    """What of a format whose scales are real numbers and integers has no hardware."""
    if len(fmt.outer) > 1:
        return "scales of both channels and a tensor"
    if any(level.scale != Real(FP32) for level in fmt.outer):
        return "an outer scale that is not float32"
    inner = [level.scale for level in fmt.blocked]
    if len(inner) > 1:
        return "two scales within a block, neither a power of two"
    if isinstance(fmt.element, SignMagnitude) and not fmt.element.signed_zero:
        return "elements that drop the sign of -0.0 under a real scale"
    return None
