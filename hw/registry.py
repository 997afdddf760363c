"""The units by name: their components, their parameters and what the golden model expects of them.

Every command, test, benchmark and report finds a unit here.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from amaranth.lib import wiring
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.dot import add_block, block_dot
from axs6.golden.encode import encode
from axs6.golden.spec import BLOCK_SIZES, DETERMINISTIC, INPUT_FORMATS, OUTPUT_FORMATS
from axs6.hw.accumulator import MOST_INTERLEAVED
from axs6.hw.block_dot import BlockDot
from axs6.hw.decoder import Decoder
from axs6.hw.dot import Dot
from axs6.hw.encoder import Encoder
from axs6.hw.matmul import Matmul

Arrays = Mapping[str, NDArray[Any]]
"""Items of a stream: an array for each field of the payload, its first axis the items."""


@dataclass(frozen=True)
class Unit:
    """A unit of hardware.

    Args:
        name: name on the command line.
        summary: what it does, in one line.
        component: class of the component; its keyword arguments are the unit's parameters.
        choices: values that each parameter with a fixed set of them may take.
        samples: values of the parameters without such a set that regressions use, but `stages`.
        golden: gives the output items that the unit must produce for input items and parameters.
    """

    name: str
    summary: str
    component: Callable[..., wiring.Component]
    choices: Mapping[str, tuple[Any, ...]]
    golden: Callable[[Arrays, Mapping[str, Any]], dict[str, NDArray[Any]]]
    samples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters and their default values, in the order of the component's signature."""
        parameters = inspect.signature(self.component).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters, the given ones in place of their defaults.

        Raises:
            ValueError: the unit has no such parameter.
        """
        for name in given:
            if name not in self.defaults:
                known = ", ".join(self.defaults)
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {known}")
        return {**self.defaults, **given}

    def most_stages(self, given: Mapping[str, Any]) -> int:
        """The largest `stages` with these parameters."""
        component: Any = self.build(**{**given, "stages": 0})
        return int(component.most_stages)

    def allowed(self, name: str) -> str:
        """The values that a parameter may take, in a few characters."""
        if name in self.choices:
            return "|".join(map(str, self.choices[name]))
        return f"0..{self.most_stages({})}" if name == "stages" else "1.."

    def build(self, **given: Any) -> wiring.Component:
        """The component with these parameters.

        Raises:
            ValueError: a parameter is unknown or has a value that the unit cannot take.
        """
        return self.component(**self.parameters(given))


def _encoder(items: Arrays, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    fmt = INPUT_FORMATS[parameters["format"]]
    bits = items["values"]
    dtype = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[fmt.name]
    values = bits.astype(f"u{fmt.width // 8}").view(dtype)
    blocks = encode(values, parameters["block"], parameters["rounding"], nonfinite="saturate")
    special = (bits >> fmt.fraction_bits & fmt.exponent_special) == fmt.exponent_special
    return {
        "block.exponent": blocks.exponents[:, 0],
        "block.codes": blocks.codes[:, 0],
        "invalid": special.any(axis=1).astype(np.uint8),
    }


def _blocks(items: Arrays, prefix: str = "") -> Blocks:
    codes = items[f"{prefix}codes"].astype(np.uint8)
    exponents = items[f"{prefix}exponent"].astype(np.uint8)
    return Blocks(
        exponents[:, None], np.zeros_like(exponents)[:, None], codes[:, None], codes.shape
    )


def _decoder(items: Arrays, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    fmt = OUTPUT_FORMATS[parameters["format"]]
    dtype = {"fp32": np.float32, "bf16": "bfloat16"}[fmt.name]
    return {"values": decode(_blocks(items), dtype).view(f"u{fmt.width // 8}")}


def _block_dot(items: Arrays, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    sums, exponents = block_dot(_blocks(items, "a."), _blocks(items, "b."))
    return {"sum": sums[:, 0], "exponent": exponents[:, 0]}


def _dot(items: Arrays, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    products = _block_dot(items, parameters)
    totals = _reduce(products["sum"], products["exponent"], items["last"], parameters)
    return {"value": totals}


def _matmul(items: Arrays, parameters: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    sides = []
    for name, axis in (("a", 2), ("b", 1)):
        codes = np.expand_dims(items[f"{name}.codes"].astype(np.uint8), axis)
        exponents = np.expand_dims(items[f"{name}.exponents"].astype(np.uint8), axis)
        shape = (*codes.shape[:-2], codes.shape[-2] * codes.shape[-1])
        sides.append(Blocks(exponents, np.zeros_like(exponents), codes, shape))
    sums, scales = block_dot(*sides)
    return {"values": _reduce(sums, scales, items["last"], parameters)}


def _reduce(
    sums: NDArray[Any], exponents: NDArray[Any], last: NDArray[Any], parameters: Mapping[str, Any]
) -> NDArray[np.uint32]:
    """FP32 results of the vectors that take turns in a stream, in the order of their last items.

    All vectors at once: step k adds the k-th block of each vector that has one.
    """
    turns = parameters["interleave"]
    starts, ends = [], []
    for turn in range(turns):
        stops = np.flatnonzero(last[turn::turns])
        ends.append(stops * turns + turn)
        starts.append(np.concatenate([[-1], stops[:-1]])[: len(stops)] * turns + turns + turn)
    order = np.argsort(np.concatenate(ends))
    start, end = (np.concatenate(each).astype(np.int64)[order] for each in (starts, ends))
    lengths = (end - start) // turns + 1
    totals = np.zeros((len(end), *sums.shape[1:]), np.uint32)
    for k in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > k)
        item = start[active] + k * turns
        totals[active] = add_block(totals[active], sums[item], exponents[item])
    return fp32.divide_by_scale(totals)


_BLOCK = {"block": BLOCK_SIZES}
_DOT_SAMPLES = {"interleave": (1, MOST_INTERLEAVED, 4, 3)}
_MATMUL_SAMPLES = {
    "rows": (4, 1, 3, 2),
    "columns": (4, 2, 1, 2),
    "interleave": (4, MOST_INTERLEAVED, 1, 3),
}

UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit(
            "encoder",
            "a block of floating-point values becomes a dense AXS-6 block",
            Encoder,
            {**_BLOCK, "format": tuple(INPUT_FORMATS), "rounding": tuple(map(str, DETERMINISTIC))},
            _encoder,
        ),
        Unit(
            "decoder",
            "a dense AXS-6 block becomes floating-point values",
            Decoder,
            {**_BLOCK, "format": tuple(OUTPUT_FORMATS)},
            _decoder,
        ),
        Unit(
            "block_dot",
            "two dense blocks become a 16-bit sum and a 9-bit exponent sum",
            BlockDot,
            _BLOCK,
            _block_dot,
        ),
        Unit(
            "dot",
            "a stream of block pairs becomes one FP32 result for each vector",
            Dot,
            _BLOCK,
            _dot,
            _DOT_SAMPLES,
        ),
        Unit(
            "matmul",
            "streams of R rows and C columns of blocks become an R x C tile of FP32 results",
            Matmul,
            _BLOCK,
            _matmul,
            _MATMUL_SAMPLES,
        ),
    )
}
"""Every unit, by name."""


def find(name: str) -> Unit:
    """The unit called `name`.

    Raises:
        ValueError: there is none; the message lists the known ones.
    """
    if name not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}, not {name!r}")
    return UNITS[name]
