"""The catalog of named formats. A new format is one entry here."""

from typing import Final

from axs6.golden.formats.block_format import BlockFormat
from axs6.golden.formats.element import Element, SignMagnitude, TwosComplement, Unsigned
from axs6.golden.formats.floating import (
    BF16,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    FP32,
    HIF4_SCALE,
    UE5M3,
)
from axs6.golden.formats.modes import ALL_MODES, DENSE_CODE
from axs6.golden.formats.scale import CHANNEL, TENSOR, Exponent, Integer, Level, Real, Shift
from axs6.golden.formats.selected import IF4, RAZER, Selected
from axs6.golden.formats.table import NF4, NF4_Q6, ValueTable


def block_floating_point(magnitude_bits: int, block: int) -> BlockFormat:
    """A sign and a magnitude of one bit before the point for each value, under one exponent."""
    element = SignMagnitude(magnitude_bits, 1 - magnitude_bits)
    return BlockFormat(element, (Level(Exponent(), block),))


def _micro(magnitude_bits: int) -> BlockFormat:
    element = SignMagnitude(magnitude_bits, 1 - magnitude_bits)
    return BlockFormat(element, (Level(Shift(1), 2), Level(Exponent(), 16)))


def _mx(element: Element, block: int = 32, rows: int = 1) -> BlockFormat:
    return BlockFormat(element, (Level(Exponent(), block, rows),))


def _whole(element: Element, zero_point: bool = False) -> BlockFormat:
    return BlockFormat(element, (Level(Real(FP32, zero_point), TENSOR),))


def _vector(bits: int, scale_bits: int = 4) -> BlockFormat:
    levels = (Level(Integer(scale_bits), 16), Level(Real(FP32), CHANNEL))
    return BlockFormat(TwosComplement(bits), levels)


def _normal(table: ValueTable) -> BlockFormat:
    return BlockFormat(table, (Level(Real(FP32), 64),))


def _selected(element: Selected) -> BlockFormat:
    return BlockFormat(element, (Level(Real(E4M3, selector=True), 16), Level(Real(FP32), TENSOR)))


AXS6_ELEMENT: Final = DENSE_CODE
AXS6_SCALE: Final = Exponent(nan=False)

CATALOG: Final[dict[str, BlockFormat]] = {
    "axs6": BlockFormat(AXS6_ELEMENT, (Level(AXS6_SCALE, 32),), ALL_MODES),
    "mx9": _micro(7),
    "mx6": _micro(4),
    "mx4": _micro(2),
    "mxfp8_e4m3": _mx(E4M3),
    "mxfp8_e5m2": _mx(E5M2),
    "mxfp6_e3m2": _mx(E3M2),
    "mxfp6_e2m3": _mx(E2M3),
    "mxfp4": _mx(E2M1),
    "mxfp4_16": _mx(E2M1, 16),
    "mxint8": _mx(TwosComplement(8, -6)),
    "nvfp4": BlockFormat(E2M1, (Level(Real(E4M3), 16), Level(Real(FP32), TENSOR))),
    "nvfp4_ue5m3": BlockFormat(E2M1, (Level(Real(UE5M3), 16),)),
    "hif4": BlockFormat(
        SignMagnitude(3, 0, ties_away=True),
        (Level(Shift(1), 4), Level(Shift(1), 8), Level(Real(HIF4_SCALE, arithmetic=BF16), 64)),
    ),
    "msfp16": block_floating_point(7, 16),
    "msfp12": block_floating_point(3, 16),
    "fp8_block": BlockFormat(E4M3, (Level(Real(FP32), 128, rows=128),)),
    "mxfp8_32x32": _mx(E4M3, rows=32),
    "fp8_e4m3": _whole(E4M3),
    "fp8_e5m2": _whole(E5M2),
    "fp8_e4m3fnuz": _whole(E4M3FNUZ),
    "fp8_e5m2fnuz": _whole(E5M2FNUZ),
    "int8": _whole(TwosComplement(8)),
    "int6": _whole(TwosComplement(6)),
    "int4": _whole(TwosComplement(4)),
    "uint8": _whole(Unsigned(8), zero_point=True),
    "vsq4": _vector(4),
    "vsq6": _vector(6),
    "vsq8": _vector(8),
    "nf4": _normal(NF4),
    "nf4q6": _normal(NF4_Q6),
    "if4": _selected(IF4),
    "razer": _selected(RAZER),
}
"""Every format that has a name, by its name."""

ROW_FORMATS: Final = {name: fmt for name, fmt in CATALOG.items() if fmt.rows == 1}
"""The same without tiles: units take the rows of tiles one by one, as `BlockFormat.untiled`."""


def formats() -> dict[str, BlockFormat]:
    """Every format that has a name, by its name."""
    return dict(CATALOG)


AXS6: Final = CATALOG["axs6"]
