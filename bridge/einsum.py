"""`tensordot`, and `einsum` that one matrix product computes."""

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any

import torch
from torch import Tensor

from axs6.torch.functional import multiply


def tensordot(places: Any, a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """torch's function of this name; blocks lie along the axes in the order of `dims`."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    left, right = ([axis % x.ndim for axis in axes] for x, axes in zip((a, b), dims, strict=True))
    if [a.shape[axis] for axis in left] != [b.shape[axis] for axis in right]:
        return NotImplemented
    if not left:
        return torch.tensordot(a, b, 0)
    rows, columns = (
        [axis for axis in range(x.ndim) if axis not in axes] for x, axes in ((a, left), (b, right))
    )
    shape = [*(a.shape[axis] for axis in rows), *(b.shape[axis] for axis in columns)]
    x, y = (_matrix(a, [], rows, left), _matrix(b, [], columns, right))
    return multiply(x, y.mT, places.site("matmul")).reshape(shape)


def einsum(places: Any, equation: Any, *operands: Any) -> Any:
    """torch's function of this name, for two operands and labels that one product supports.

    Labels of both operands that are missing in the result are reduced. Blocks lie along these
    labels in the order of the first operand.
    """
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) > 2:
        return NotImplemented
    if len(operands) == 1:
        return torch.einsum(equation, *operands)
    a, b = operands
    labels = _labels(equation, a, b)
    if labels is None:
        return NotImplemented
    left, right, result = labels
    sizes = dict(zip(left + right, (*a.shape, *b.shape), strict=True))
    shared = [label for label in left if label in right]
    reduced = [label for label in shared if label not in result]
    batch = [label for label in shared if label in result]
    rows, columns = ([label for label in of if label not in shared] for of in (left, right))
    fits = dict(zip(left, a.shape, strict=True)).items() <= sizes.items()
    once = all(len(set(term)) == len(term) for term in labels)
    if not (fits and once and set(result) == {*batch, *rows, *columns}):
        return NotImplemented
    if not reduced:
        return torch.einsum(equation, *operands)
    x = _matrix(a, *([left.index(label) for label in part] for part in (batch, rows, reduced)))
    y = _matrix(b, *([right.index(label) for label in part] for part in (batch, columns, reduced)))
    product = multiply(x, y.mT, places.site("matmul"))
    order = [*batch, *rows, *columns]
    product = product.reshape([sizes[label] for label in order])
    return product.permute([order.index(label) for label in result])


def _matrix(x: Tensor, batch: Sequence[int], rows: Sequence[int], depth: Sequence[int]) -> Tensor:
    """Axes of a tensor as those of matrices, (B, R, K), or (R, K) where there is no batch."""
    sizes = [prod([x.shape[axis] for axis in axes]) for axes in (batch, rows, depth)]
    return x.permute(*batch, *rows, *depth).reshape(sizes if batch else sizes[1:])


def _labels(equation: str, a: Tensor, b: Tensor) -> tuple[str, str, str] | None:
    """Labels of the axes of both operands and of the result; None where they do not fit."""
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:
        named = inputs.replace(",", "").replace(".", "")
        result = "..." + "".join(c for c in sorted(set(named)) if named.count(c) == 1)
    terms = inputs.split(",")
    if len(terms) != 2:
        return None
    # The axes of an ellipsis have letters of their own, the last axis the last letter.
    unused = "".join(c for c in ascii_letters if c not in equation)
    counts = [
        x.ndim - len(term) + 3 if "..." in term else 0
        for x, term in zip((a, b), terms, strict=True)
    ]
    axes = [unused[len(unused) - count :] for count in counts]
    left, right = (term.replace("...", some) for term, some in zip(terms, axes, strict=True))
    if (len(left), len(right)) != (a.ndim, b.ndim):
        return None
    return left, right, result.replace("...", max(axes, key=len))
