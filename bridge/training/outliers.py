"""Products whose largest values stay in FP32."""

from math import ceil

import torch
from torch import Tensor, nn
from torch.nn import functional


def split_outliers(x: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """A tensor without its largest magnitudes, and these alone.

    Args:
        x: values of any shape.
        share: of the values that are outliers, 0 to 1, rounded up to whole values. Of equal
            magnitudes at the border any may be chosen.

    Returns:
        Two tensors of the shape of `x`; at every place one of them is zero. Their sum is `x`.

    Raises:
        ValueError: the share is out of range.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    chosen = torch.zeros(x.numel(), dtype=torch.bool, device=x.device)
    chosen[x.detach().abs().flatten().topk(ceil(share * x.numel())).indices] = True
    chosen = chosen.view(x.shape)
    return x.masked_fill(chosen, 0.0), x.masked_fill(~chosen, 0.0)


class OutlierLinear(nn.Linear):
    """`nn.Linear` whose largest weights and inputs are multiplied in FP32.

    `convert` replaces the product of the other values; without the outliers their blocks have
    smaller scales. The few products of outliers are added one by one.

    Args:
        share: of the weights, and of the inputs of each call, that are outliers.
        options: options of `nn.Linear`.
    """

    def __init__(self, in_features: int, out_features: int, share: float, bias: bool = True):
        super().__init__(in_features, out_features, bias)
        self.share = share

    def forward(self, input: Tensor) -> Tensor:
        """(..., K) to (..., N)."""
        x = input.reshape(-1, self.in_features)
        rest, outliers = split_outliers(x, self.share)
        weight, heavy = split_outliers(self.weight, self.share)
        y = functional.linear(rest, weight, self.bias)
        y = _add_products(y, outliers, self.weight)
        y = _add_products(y.mT, heavy, rest).mT
        return y.reshape(*input.shape[:-1], self.out_features)


def _add_products(y: Tensor, sparse: Tensor, dense: Tensor) -> Tensor:
    """y (R, N) plus sparse (R, K) times the transpose of dense (N, K), by the values not zero."""
    rows, columns = sparse.detach().nonzero(as_tuple=True)
    return y.index_add(0, rows, sparse[rows, columns].unsqueeze(1) * dense.mT[columns])


def keep_outliers(model: nn.Module, share: float) -> nn.Module:
    """Turn the layers of class `nn.Linear` of a model into `OutlierLinear`, in place.

    Parameters stay the same objects. Layers of derived classes are left alone.

    Returns:
        The model, or its replacement if the model itself is such a layer.

    Raises:
        ValueError: the share is out of range, or the model has no such layer.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    found = [module for module in model.modules() if type(module) is nn.Linear]
    if not found:
        raise ValueError("the model has no layer of class Linear")
    for module in found:
        module.__class__ = OutlierLinear
        module.share = share  # type: ignore[assignment]
    return model
