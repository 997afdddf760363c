"""Spaces of the lanes of the block dot product: every pair of codes in every lane."""

import numpy as np

from axs6.golden.formats import Integer
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.registry import UNITS
from axs6.hw.units.block_dot import shape_of
from axs6.sim.exhaustive.space import Design, Items, Space, named


def product_space(block: int | None = None, view: str = STRUCTURE, fmt: str = "axs6") -> Space:
    """Every pair of codes in each lane of the block dot product, zeros in the other lanes.

    The sum is then the product of that lane alone. Exponents go through all their pairs, other
    scales through all their values.

    Args:
        block: lanes; those of the format by default.
        view: of the block dot product.
        fmt: block format, or two joined by `x`.
    """
    unit, given = UNITS["block_dot"], {"block": block} if block else {}
    parameters = unit.parameters({"format": fmt, "view": view, **given})
    shape = shape_of(parameters)
    lanes = shape.block
    first, second = (1 << x.element.width for x in shape.formats)
    pairs = first * second

    def inputs(chunk: int) -> Items:
        pair = np.arange(pairs)
        items: Items = {}
        for side, code, x in zip("ab", divmod(pair, second), shape.formats, strict=True):
            codes = np.zeros((pairs, lanes), np.uint8)
            codes[:, chunk] = code
            items[f"{side}.codes"] = codes
            row = pair + chunk * pairs
            for name, level in zip(scale_names(x), x.blocked[::-1], strict=True):
                groups = lanes // int(level.group)
                low = int(isinstance(level.scale, Integer))
                count = level.scale.largest_code + 1 - low
                scales = low + (row if side == "a" else row // count) % count
                items[f"{side}.{name}"] = scales if groups == 1 else scales[:, None] + [0] * groups
        return items

    return Space(
        name=named("products" if fmt == "axs6" else f"products-{fmt}", view),
        formula=f"{first} codes x {second} codes x {lanes} lanes",
        cases=pairs * lanes,
        chunks=lanes,
        design=Design(f"block_dot {fmt}", lambda: unit.build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: unit.golden(items, parameters)},
    )
