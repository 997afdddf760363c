"""Block formats as data: elements, scales, `BlockFormat`, the catalog and the strings."""

from axs6.golden.formats.block_format import BlockFormat
from axs6.golden.formats.catalog import AXS6, CATALOG, ROW_FORMATS, formats
from axs6.golden.formats.codes import NotANumber
from axs6.golden.formats.element import Element, SignMagnitude, TwosComplement, Unsigned
from axs6.golden.formats.floating import BF16, FP16, FP32, FP64, Float, Specials, p3109
from axs6.golden.formats.modes import Mode
from axs6.golden.formats.names import (
    block_format,
    format_list,
    name_of,
    operand_formats,
    operands_name,
)
from axs6.golden.formats.scale import (
    CHANNEL,
    TENSOR,
    Exponent,
    Integer,
    Level,
    Real,
    Rule,
    Scale,
    ScaleChoice,
    Shift,
)
from axs6.golden.formats.selected import Selected
from axs6.golden.formats.table import ValueTable

__all__ = [
    "AXS6",
    "BF16",
    "CATALOG",
    "CHANNEL",
    "FP16",
    "FP32",
    "FP64",
    "ROW_FORMATS",
    "TENSOR",
    "BlockFormat",
    "Element",
    "Exponent",
    "Float",
    "Integer",
    "Level",
    "Mode",
    "NotANumber",
    "Real",
    "Rule",
    "Scale",
    "ScaleChoice",
    "Selected",
    "Shift",
    "SignMagnitude",
    "Specials",
    "TwosComplement",
    "Unsigned",
    "ValueTable",
    "block_format",
    "format_list",
    "formats",
    "name_of",
    "operand_formats",
    "operands_name",
    "p3109",
]
