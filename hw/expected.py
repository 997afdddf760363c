"""What the golden model expects of the units, for arrays of input items."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.dot import add_block, block_dot
from axs6.golden.encode import encode
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.formats import Mode
from axs6.golden.lfsr import Lfsr
from axs6.golden.pack import HEADER_BYTES, MODE_MASK
from axs6.golden.rows import read_rows, write_rows
from axs6.golden.spec import (
    EXPONENT_BITS,
    EXPONENT_MAX,
    INPUT_DTYPES,
    MODE_BITS,
    OUTPUT_DTYPES,
    Rounding,
)

Arrays = Mapping[str, NDArray[Any]]
"""Items of a stream: an array for each field of the payload, its first axis the items."""

Outputs = dict[str, NDArray[Any]]


def encoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Blocks in the encoder's mode."""
    fmt = INPUT_DTYPES[parameters["dtype"]]
    bits = items["values"]
    dtype = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[fmt.name]
    blocks = encode(
        bits.astype(f"u{fmt.width // 8}").view(dtype),
        block=parameters["block"],
        rounding=parameters["rounding"],
        mode=parameters["mode"],
        random=items.get("random"),
        random_bits=parameters["random_bits"],
        nonfinite="saturate",
    )
    special = (bits >> fmt.fraction_bits & fmt.exponent_special) == fmt.exponent_special
    return _block_items(blocks, parameters["mode"]) | {
        "invalid": special.any(axis=1).view(np.uint8)
    }


def feedback_encoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Blocks, and what they leave of the values with their errors."""
    values, errors = (
        items[name].astype(np.uint32).view(np.float32) for name in ("values", "errors")
    )
    blocks, left = encode_with_feedback(
        values,
        errors,
        parameters["block"],
        rounding=parameters["rounding"],
        nonfinite="saturate",
    )
    with np.errstate(over="ignore", invalid="ignore"):
        invalid = ~np.isfinite(values + errors).all(axis=1)
    return {
        **_block_items(blocks, Mode.DENSE.label),
        "invalid": invalid.view(np.uint8),
        "errors": left.view(np.uint32),
    }


def lfsr_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Words since the last restart."""
    count = len(items["restart"])
    words = np.empty((count, parameters["block"]), np.uint32)
    starts = np.flatnonzero(items["restart"])
    bounds = np.unique(np.concatenate([[0], starts, [count]]))
    for start, end in pairwise(bounds.tolist()):
        words[start:end] = _lfsr(parameters).draw(end - start)
    return {"random": words}


def _lfsr(parameters: Mapping[str, Any]) -> Lfsr:
    return Lfsr(parameters["block"], parameters["lfsr_seed"], parameters["random_bits"])


def stochastic_encoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Blocks rounded by words that nothing restarts."""
    words = _lfsr(parameters).draw(len(items["values"]))
    rounding = {"rounding": Rounding.STOCHASTIC}
    return encoder_items({**items, "random": words}, {**parameters, **rounding})


def _block_items(blocks: Blocks, mode: str) -> Outputs:
    if mode == Mode.DENSE.label:
        return {"block.exponent": blocks.exponents[:, 0], "block.codes": blocks.codes[:, 0]}
    return packed_items(write_rows(blocks), "block.")


def packed_items(rows: NDArray[np.uint8], prefix: str = "") -> Outputs:
    """The fields of a `packed_layout` for packed blocks in rows of bytes."""
    header = rows[:, :HEADER_BYTES].copy().view("<u2")[:, 0]
    return {
        f"{prefix}mode": header & MODE_MASK,
        f"{prefix}exponent": header >> MODE_BITS & EXPONENT_MAX,
        f"{prefix}reserved": header >> MODE_BITS + EXPONENT_BITS,
        f"{prefix}payload": rows[:, HEADER_BYTES:],
    }


def dense_blocks(exponents: NDArray[Any], codes: NDArray[Any]) -> Blocks:
    """Blocks of exponents (n,) and codes (n, B)."""
    modes = np.zeros_like(exponents, np.uint8)[:, None]
    return Blocks.with_modes(
        exponents.astype(np.uint8)[:, None], modes, codes[:, None], codes.shape
    )


def _blocks(items: Arrays, prefix: str = "") -> Blocks:
    return dense_blocks(items[f"{prefix}exponent"], items[f"{prefix}codes"].astype(np.uint8))


def _read(items: Arrays, prefix: str, block: int) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks of any mode, and which could not be read."""
    mode, exponent, reserved = (
        items[f"{prefix}{name}"].astype(np.uint16) for name in ("mode", "exponent", "reserved")
    )
    header = mode | exponent << MODE_BITS | reserved << MODE_BITS + EXPONENT_BITS
    payload = items[f"{prefix}payload"].astype(np.uint8)
    header_bytes = header.astype("<u2").view(np.uint8).reshape(-1, HEADER_BYTES)
    return read_rows(np.concatenate([header_bytes, payload], axis=1), block)


def _expanded(items: Arrays, prefix: str, block: int) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks as dense ones, and which are errors: those that could not be read or expanded."""
    blocks, error = _read(items, prefix, block)
    precise = blocks.modes[:, 0] == Mode.HIGH_PRECISION
    exponents = np.where(precise, 0, blocks.exponents[:, 0])
    codes = np.where(precise[:, None], np.uint8(0), blocks.codes[:, 0])
    return dense_blocks(exponents, codes), error | precise


def expander_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Dense blocks, zeros for errors."""
    blocks, error = _expanded(items, "", parameters["block"])
    return {
        "exponent": blocks.exponents[:, 0],
        "codes": blocks.codes[:, 0],
        "error": error.view(np.uint8),
    }


def decoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Values, zeros for errors."""
    fmt = OUTPUT_DTYPES[parameters["dtype"]]
    dtype = {"fp32": np.float32, "bf16": "bfloat16"}[fmt.name]
    errors = {}
    if parameters["blocks"] == "packed":
        blocks, error = _read(items, "", parameters["block"])
        errors["error"] = error.view(np.uint8)
    else:
        blocks = _blocks(items)
    return {"values": decode(blocks, dtype).view(f"u{fmt.width // 8}"), **errors}


def block_dot_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Sums and exponent sums of dense blocks."""
    return _products(_blocks(items, "a."), _blocks(items, "b."))


def _products(a: Blocks, b: Blocks) -> Outputs:
    sums, exponents = block_dot(a, b)
    return {"sum": sums[:, 0], "exponent": exponents[:, 0]}


def dot_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Results of vectors; an error in any block of a vector is one of its result."""
    last, turns = items["last"], parameters["interleave"]
    if parameters["blocks"] == "dense":
        products = block_dot_items(items, parameters)
        return {"value": _reduce(products["sum"], products["exponent"], last, turns)}
    (a, wrong_a), (b, wrong_b) = (_expanded(items, f"{x}.", parameters["block"]) for x in "ab")
    products = _products(a, b)
    return {
        "value": _reduce(products["sum"], products["exponent"], last, turns),
        "error": _any_in_vector(wrong_a | wrong_b, last, turns).view(np.uint8),
    }


def matmul_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Results of tiles of dense blocks."""
    sides = []
    for name, axis in (("a", 2), ("b", 1)):
        codes = np.expand_dims(items[f"{name}.codes"].astype(np.uint8), axis)
        exponents = np.expand_dims(items[f"{name}.exponents"].astype(np.uint8), axis)
        shape = (*codes.shape[:-2], codes.shape[-2] * codes.shape[-1])
        sides.append(Blocks.with_modes(exponents, np.zeros_like(exponents), codes, shape))
    sums, scales = block_dot(*sides)
    return {"values": _reduce(sums, scales, items["last"], parameters["interleave"])}


def _reduce(
    sums: NDArray[Any], exponents: NDArray[Any], last: NDArray[Any], turns: int
) -> NDArray[np.uint32]:
    """FP32 results of the vectors that take turns in a stream, in the order of their last items.

    All vectors at once: step k adds the k-th block of each vector that has one.
    """
    start, lengths = _vectors(last, turns)
    totals = np.zeros((len(start), *sums.shape[1:]), np.uint32)
    for k in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > k)
        item = start[active] + k * turns
        totals[active] = add_block(totals[active], sums[item], exponents[item])
    return fp32.divide_by_scale(totals)


def _any_in_vector(flags: NDArray[np.bool_], last: NDArray[Any], turns: int) -> NDArray[np.bool_]:
    """Whether a flag is set in each of the vectors, in the order of their last items."""
    start, lengths = _vectors(last, turns)
    items = zip(start.tolist(), lengths.tolist(), strict=True)
    return np.array([flags[first : first + n * turns : turns].any() for first, n in items], bool)


def _vectors(last: NDArray[Any], turns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First items and lengths of vectors that take turns, in the order of their last items."""
    starts, ends = [], []
    for turn in range(turns):
        stops = np.flatnonzero(last[turn::turns])
        ends.append(stops * turns + turn)
        starts.append(np.concatenate([[-1], stops[:-1]])[: len(stops)] * turns + turns + turn)
    order = np.argsort(np.concatenate(ends))
    start, end = (np.concatenate(each).astype(np.int64)[order] for each in (starts, ends))
    return start, (end - start) // turns + 1
