"""The products of a language model, and the values that they encode."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axs6.studies.language.models import LanguageModel, scores
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting
from axs6.studies.models import repeatable
from axs6.torch.site import Site, observed


@dataclass(frozen=True)
class CountedProduct:
    """Products of matrices in a block format: (groups, rows, depth) by (groups, columns, depth).

    Args:
        groups, rows, columns, depth: sizes of the operands.
        weighted: whether the right operand is weights, which were encoded before.
    """

    groups: int
    rows: int
    columns: int
    depth: int
    weighted: bool


def products(model: LanguageModel, setting: Setting, tokens: Tensor) -> list[CountedProduct]:
    """The products that a model computes in block formats over a window of tokens, (T,)."""
    found: list[CountedProduct] = []

    def observe(site: Site, a: Tensor, b: Tensor, *_: Any) -> None:
        groups, rows, depth = a.shape
        found.append(CountedProduct(groups, rows, b.shape[1], depth, site.weighted))

    module = quantised(model, setting)
    with repeatable(0), torch.inference_mode(), observed(observe):
        scores(module, tokens.unsqueeze(0))
    return found


TILE = 4
"""Rows of a tile of dot products, and its columns."""


def tile_macs(some: Iterable[CountedProduct], lanes: int) -> int:
    """MACs of products on a tile of 4 x 4 dot products with lanes, zeros that fill it included."""
    return sum(
        x.groups * _whole(x.rows, TILE) * _whole(x.columns, TILE) * _whole(x.depth, lanes)
        for x in some
    )


def encoded_values(some: Iterable[CountedProduct], block: int) -> int:
    """Values of operands that encoders take, zeros that fill blocks included.

    Each operand of a product is encoded for it, weights not at all.
    """
    return sum(
        x.groups * (x.rows + (0 if x.weighted else x.columns)) * _whole(x.depth, block)
        for x in some
    )


def _whole(size: int, part: int) -> int:
    """The least multiple of a part that is no smaller than a size."""
    return -(-size // part) * part
