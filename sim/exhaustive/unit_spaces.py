"""Spaces of the decoder and of the lanes of the block dot product: every code in every lane."""

import numpy as np

from axs6.golden.spec import CODE_BITS, EXPONENT_BITS
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.registry import UNITS
from axs6.sim.exhaustive.space import Design, Items, Space, named

CODES = 1 << CODE_BITS
EXPONENTS = 1 << EXPONENT_BITS


def decoder_space(dtype: str, block: int = 8, view: str = STRUCTURE) -> Space:
    """Every code with every exponent in each lane of the decoder.

    Args:
        dtype: of the values.
        block: lanes.
        view: of the decoder.
    """
    parameters = UNITS["decoder"].parameters({"block": block, "dtype": dtype, "view": view})

    def inputs(chunk: int) -> Items:
        lanes = np.arange(block, dtype=np.uint8)
        turned = (lanes[:, None] + lanes) % block
        groups = np.arange(0, CODES, block, dtype=np.uint8)
        codes = (groups[:, None, None] + turned).reshape(-1, block)
        return {
            "exponent": np.repeat(np.arange(EXPONENTS, dtype=np.uint8), len(codes)),
            "codes": np.tile(codes, (EXPONENTS, 1)),
        }

    return Space(
        name=named(f"decoder-{dtype}", view),
        formula=f"2^8 exponents x 64 codes x {block} lanes",
        cases=EXPONENTS * CODES * block,
        chunks=1,
        design=Design(f"decoder {dtype}", lambda: UNITS["decoder"].build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: UNITS["decoder"].golden(items, parameters)},
    )


def product_space(block: int = 32, view: str = STRUCTURE) -> Space:
    """Every pair of codes in each lane of the block dot product, zeros in the other lanes.

    The sum is then the product of that lane alone. The exponents go through all their pairs.

    Args:
        block: lanes.
        view: of the block dot product.
    """
    parameters = {"block": block, "view": view}

    def inputs(chunk: int) -> Items:
        row = np.arange(block * CODES * CODES)
        lane, pair = np.divmod(row, CODES * CODES)
        items = {}
        for side, code in (("a", pair // CODES), ("b", pair % CODES)):
            codes = np.zeros((len(row), block), np.uint8)
            codes[row, lane] = code
            items[f"{side}.codes"] = codes
        exponents = {"a.exponent": row, "b.exponent": row >> EXPONENT_BITS}
        return items | {name: each.astype(np.uint8) for name, each in exponents.items()}

    return Space(
        name=named("products", view),
        formula=f"64 codes x 64 codes x {block} lanes",
        cases=CODES * CODES * block,
        chunks=1,
        design=Design("block_dot", lambda: UNITS["block_dot"].build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: UNITS["block_dot"].golden(items, parameters)},
    )
