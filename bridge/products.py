"""Torch's functions that are matrix products: replaced ones with their replacements, and others.

A replacement takes a source of places and the function's own arguments. It returns NotImplemented
if the arguments make the function something else than one product along one axis.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverloadPacket
from torch.nn import functional

from axs6.torch.attention import scaled_dot_product_attention
from axs6.torch.constant import traced_as_constant
from axs6.torch.einsum import einsum, tensordot
from axs6.torch.extent import scales_tensor
from axs6.torch.functional import multiply
from axs6.torch.layers import bilinear, convolve, linear
from axs6.torch.recurrent import KINDS, RECURRENT, Places
from axs6.torch.site import site_of
from axs6.torch.transposed import convolve_transposed

WEIGHTED = ("linear", "bilinear", "grouped", "conv", "conv_transpose", *KINDS)
"""Kinds of places whose right operands are weights."""


Replacement = Callable[..., Any]


def _product(second: str, *axes: int) -> Replacement:
    """A product of two operands; `second` is the name of the other one.

    Args:
        axes: number of axes of both; any by default.
    """

    def run(places: Places, input: Tensor, *others: Tensor, **named: Tensor) -> Tensor:
        (other,) = _operands(others, named, second)
        _check(input, other, axes)
        return multiply(input, other, places.site("matmul"))

    return run


def _sum(first: str, second: str, *axes: int) -> Replacement:
    """beta * input + alpha * product, in FP32 like the sum with a bias, rounded once."""

    def run(
        places: Places,
        input: Tensor,
        *others: Tensor,
        beta: float = 1,
        alpha: float = 1,
        **named: Tensor,
    ) -> Tensor:
        a, b = _operands(others, named, first, second)
        _check(a, b, axes)
        dtype = a.dtype
        if dtype == b.dtype and dtype.itemsize < torch.float32.itemsize:
            # Values with the same codes, whose product is not rounded to fewer bits.
            a, b = a.float(), b.float()
        y = multiply(a, b, places.site("matmul")).float()
        y = y if alpha == 1 else alpha * y
        if beta != 0:
            added = input.float()
            y = y + (added if beta == 1 else beta * added)
        elif y.shape != input.shape:
            y = y.expand(torch.broadcast_shapes(y.shape, input.shape))
        return y.to(dtype)

    return run


def _in_place(replacement: Replacement) -> Replacement:
    """The in-place form of a function: writes the result into the first argument."""

    def run(places: Places, input: Tensor, *others: Tensor, **options: Any) -> Tensor:
        return input.copy_(replacement(places, input, *others, **options))

    return run


def _operands(given: Sequence[Tensor], named: dict[str, Tensor], *names: str) -> list[Tensor]:
    """Operands by position, then by name."""
    rest = names[len(given) :]
    if len(given) > len(names) or set(named) != set(rest):
        raise TypeError(f"operands must be {', '.join(names)}, not {[*range(len(given)), *named]}")
    return [*given, *(named[name] for name in rest)]


def _check(a: Tensor, b: Tensor, axes: tuple[int, ...]) -> None:
    if axes and ((a.ndim, b.ndim) != axes or a.shape[:-2] != b.shape[:-2]):
        raise ValueError(
            f"operands must have {axes[0]} and {axes[1]} axes and as many matrices, "
            f"not shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )


def _reflected(places: Places, input: Tensor, other: Tensor) -> Tensor:
    return multiply(other, input, places.site("matmul"))


def _inner(places: Places, input: Tensor, other: Tensor) -> Tensor:
    if not (input.ndim and other.ndim):
        return input * other
    return tensordot(places, input, other, ([-1], [-1]))


def _vecdot(places: Places, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    rows, columns = x.movedim(dim, -1).unsqueeze(-2), y.movedim(dim, -1).unsqueeze(-1)
    return multiply(rows, columns, places.site("matmul")).squeeze(-1).squeeze(-1)


def _linear(places: Places, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.ndim != 1:
        return linear(input, weight, bias, places.site("linear"))
    if bias is not None:
        raise ValueError("linear with a weight of one axis must have no bias")
    return linear(input, weight.unsqueeze(0), None, places.site("linear")).squeeze(-1)


def _convolution(axes: int) -> Replacement:
    """`functional.conv1d`, `conv2d` or `conv3d`."""

    def run(
        places: Places,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        stride, dilation = (_each(sizes, axes) for sizes in (stride, dilation))
        pads = _padding(padding, weight.shape[2:], dilation)
        site = places.site("conv")
        return convolve(input, weight, bias, stride, dilation, groups, site, padding=pads)

    return run


def _transposed_convolution(axes: int) -> Replacement:
    """`functional.conv_transpose1d`, `conv_transpose2d` or `conv_transpose3d`."""

    def run(
        places: Places,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        stride, padding, output_padding, dilation = (
            _each(sizes, axes) for sizes in (stride, padding, output_padding, dilation)
        )
        site = places.site("conv_transpose")
        options = (stride, padding, output_padding, groups, dilation, site)
        return convolve_transposed(input, weight, bias, *options)

    return run


def _bilinear(
    places: Places, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    return bilinear(input1, input2, weight, bias, places.site("bilinear"))


def _each(sizes: Any, axes: int) -> tuple[int, ...]:
    """A size for each axis."""
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return sizes * axes if len(sizes) == 1 else sizes


def _padding(padding: Any, taps: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding before and after each axis, the last one first."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        totals = [step * (count - 1) for count, step in zip(taps, dilation, strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
    else:
        pairs = [(size, size) for size in _each(padding, len(taps))]
    return [size for pair in reversed(pairs) for size in pair]


def _attention(places: Places, *args: Any, **kwargs: Any) -> Tensor:
    sites = (places.site("scores"), places.site("values"))
    return scaled_dot_product_attention(sites, *args, **kwargs)


def _grouped(
    places: Places,
    input: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """`functional.grouped_mm`: a product for each group of rows, columns or K.

    Where rows are in groups, the right operands are weights. Values behind the last group are zero;
    torch leaves them uninitialised.
    """
    axes = (input.ndim, mat2.ndim)
    if bias is not None or out_dtype is not None or (offs is None) != (axes == (3, 3)):
        return NotImplemented
    if offs is None:
        return multiply(input, mat2, places.site("matmul"))
    by_rows, by_columns = axes == (2, 3), axes == (3, 2)
    length = mat2.shape[-1] if by_columns else input.shape[0 if by_rows else 1]
    ends = offs.tolist()
    bounds = [0, *ends]
    count = len(mat2) if by_rows else len(input) if by_columns else len(ends)
    if len(ends) != count or sorted(bounds) != bounds or bounds[-1] > length:
        raise ValueError(f"offs must be {count} rising ends of at most {length}, not {ends}")
    groups = [slice(*pair) for pair in pairwise(bounds)]
    site = places.site("grouped" if by_rows else "matmul")
    if by_rows:
        parts = _products([(input[g], b) for g, b in zip(groups, mat2, strict=True)], site)
        return _filled(torch.cat(parts), length, mat2.shape[-1])
    if by_columns:
        parts = _products([(a, mat2[:, g]) for a, g in zip(input, groups, strict=True)], site)
        return _filled(torch.cat(parts, 1), input.shape[1], length)
    return torch.stack(_products([(input[:, g], mat2[g]) for g in groups], site))


def _products(pairs: Sequence[tuple[Tensor, Tensor]], handle: int) -> list[Tensor]:
    """Products of matrices (M, K) and (K, N) of any sizes; a scale of the tensor covers all of
    them."""
    options = site_of(handle).options
    if not any(scales_tensor(fmt) for fmt in options.formats):
        return [multiply(a, b, handle) for a, b in pairs]
    sizes = [(*a.shape, b.shape[1]) for a, b in pairs]
    rows, depth, columns = (max(each) for each in zip(*sizes, strict=True))
    left = torch.stack([_filled(a, rows, depth) for a, _ in pairs])
    right = torch.stack([_filled(b, depth, columns) for _, b in pairs])
    y = multiply(left, right, handle)
    return [each[:m, :n] for each, (m, _, n) in zip(y, sizes, strict=True)]


def _filled(x: Tensor, rows: int, columns: int) -> Tensor:
    """A matrix with zeros up to a size."""
    return functional.pad(x, (0, columns - x.shape[1], 0, rows - x.shape[0]))


_BY_NAME: Mapping[str, Replacement] = {
    "__matmul__": _product("other"),
    "matmul": _product("other"),
    "__rmatmul__": _reflected,
    "mm": _product("mat2", 2, 2),
    "bmm": _product("mat2", 3, 3),
    "mv": _product("vec", 2, 1),
    "dot": _product("tensor", 1, 1),
    "vdot": _product("other", 1, 1),
    "inner": _inner,
    "addmm": _sum("mat1", "mat2", 2, 2),
    "addmv": _sum("mat", "vec", 2, 1),
    "baddbmm": _sum("batch1", "batch2", 3, 3),
    "addmm_": _in_place(_sum("mat1", "mat2", 2, 2)),
    "addmv_": _in_place(_sum("mat", "vec", 2, 1)),
    "baddbmm_": _in_place(_sum("batch1", "batch2", 3, 3)),
    "linear": _linear,
    "conv1d": _convolution(1),
    "conv2d": _convolution(2),
    "conv3d": _convolution(3),
    "conv_transpose1d": _transposed_convolution(1),
    "conv_transpose2d": _transposed_convolution(2),
    "conv_transpose3d": _transposed_convolution(3),
    "bilinear": _bilinear,
    "scaled_dot_product_attention": _attention,
    "einsum": einsum,
    "tensordot": tensordot,
    "linalg_matmul": _product("other"),
    "_grouped_mm": _grouped,
    "vecdot": _vecdot,
    "linalg_vecdot": _vecdot,
    **RECURRENT,
}

_OTHERS = """
addbmm addbmm_ addr cdist chain_matmul multi_dot linalg_multi_dot cov corrcoef matrix_power
linalg_matrix_power matrix_exp linalg_matrix_exp pinverse pinv linalg_pinv orgqr
householder_product linalg_householder_product ormqr affine_grid affine_grid_generator
affine_grid_generator_backward cudnn_affine_grid_generator cudnn_affine_grid_generator_backward
multi_head_attention_forward linear_cross_entropy conv_tbc convolution _convolution
_convolution_mode convolution_overrideable _conv_depthwise2d conv_depthwise3d slow_conv3d
slow_conv3d_forward _slow_conv2d_forward slow_conv_dilated2d slow_conv_dilated3d
slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d _nnpack_spatial_convolution
_mps_convolution _mps_convolution_transpose mkldnn_convolution cudnn_convolution
cudnn_convolution_relu cudnn_convolution_add_relu cudnn_convolution_transpose miopen_convolution
miopen_convolution_relu miopen_convolution_add_relu miopen_convolution_transpose
miopen_depthwise_convolution convolution_backward convolution_backward_overrideable
_convolution_double_backward _slow_conv2d_backward conv_tbc_backward mps_convolution_backward
mps_convolution_transpose_backward _addmm_activation _foreach_mm _int_mm _trilinear _cdist_forward
_cdist_backward _euclidean_dist _compute_linear_combination matmul_backward linear_backward
matrix_exp_backward mkldnn_linear mkldnn_linear_backward mkldnn_linear_backward_input
mkldnn_linear_backward_weights _scaled_mm _scaled_mm_v2 _scaled_grouped_mm _scaled_grouped_mm_v2
_mixed_dtypes_linear _dyn_quant_matmul_4bit _weight_int8pack_mm _weight_int4pack_mm
_weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros
_wrapped_quantized_linear_prepacked fbgemm_linear_fp16_weight fbgemm_linear_int8_weight
fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight_fp32_activation
_cslt_sparse_mm _sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward
_sparse_sparse_matmul _sparse_semi_structured_addmm _sparse_semi_structured_linear
_sparse_semi_structured_mm sparse_sampled_addmm sampled_addmm hspmm smm sspaddmm
_scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps
_scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
_scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
_scaled_dot_product_fused_attention_overrideable
_scaled_dot_product_fused_attention_overrideable_backward _flash_attention_forward
_flash_attention_backward _flash_attention_forward_no_dropout_inplace _efficient_attention_forward
_efficient_attention_backward _cudnn_attention_forward _cudnn_attention_backward
_native_multi_head_attention _triton_multi_head_attention _triton_scaled_dot_attention
_transformer_encoder_layer_fwd flex_attention flex_attention_backward _cudnn_rnn
_cudnn_rnn_backward miopen_rnn miopen_rnn_backward mkldnn_rnn_layer mkldnn_rnn_layer_backward
_lstm_mps lstm_mps_backward quantized_gru quantized_lstm quantized_gru_cell quantized_lstm_cell
quantized_rnn_relu_cell quantized_rnn_tanh_cell
"""

_HOMES = (
    *(torch, Tensor, functional, torch.linalg, torch.sparse, operator),
    *(torch.ops.aten, torch.ops.higher_order),
)


def _functions(name: str) -> set[Any]:
    """Torch's function of this name."""
    return {getattr(home, name) for home in _HOMES if hasattr(home, name)}


REPLACED: Mapping[Any, Replacement] = {
    function: replacement for name, replacement in _BY_NAME.items() for function in _functions(name)
}
"""Replacements of functions."""

PRODUCTS: Mapping[Any, str] = {
    function: name for name in (*_BY_NAME, *_OTHERS.split()) for function in _functions(name)
}
"""Functions that are products, replaced or not, and their names."""

_PRODUCT_WORDS = re.compile(
    "mm(_|$)|matmul|gemm|linear|conv|attention|attn|einsum|rnn|lstm|gru(_|$)|mlp|(^|_)moe(_|$)"
)


def product_name(called: Any) -> str | None:
    """The name of a function, if it is a product. Operators of other libraries are recognised by
    the words of their names.
    """
    if called in PRODUCTS:
        return PRODUCTS[called]
    return _foreign_name(called) if isinstance(called, OpOverloadPacket) else None


@traced_as_constant
def _foreign_name(operator: OpOverloadPacket) -> str | None:
    space, _, name = operator._qualified_op_name.partition("::")
    is_product = space not in ("aten", "prims", "axs6") and _PRODUCT_WORDS.search(name)
    return f"{space}.{name}" if is_product else None
