import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from axs6.torch import MatMul, bmm, convert, matmul

Same = Callable[[Tensor, Tensor], bool]
Product = Callable[..., Tensor]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("block", [8, 16, 32])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(
    dtype: torch.dtype, block: int, bias: bool, same: Same, golden_product: Product
) -> None:
    layer = nn.Linear(70, 9, bias=bias, dtype=dtype)
    converted = convert(layer, block=block)
    for shape in ((70,), (5, 70), (2, 3, 70), (0, 70)):
        x = torch.randn(shape).to(dtype)
        expected = golden_product(x, layer.weight, block)
        if layer.bias is not None:
            expected = expected + layer.bias.float()
        assert same(converted(x), expected.to(dtype))
        assert converted(x).shape == layer(x).shape


def convolve(layer: Any, x: Tensor, product: Product) -> Tensor:
    """A convolution of a padded (N, C, H, W), one output pixel of one group at a time."""
    (dy, dx), (sy, sx) = layer.dilation, layer.stride
    rows, columns = layer.kernel_size
    height = (x.shape[2] - dy * (rows - 1) - 1) // sy + 1
    width = (x.shape[3] - dx * (columns - 1) - 1) // sx + 1
    y = torch.empty(len(x), layer.out_channels, height, width)
    inside, outside = x.shape[1] // layer.groups, layer.out_channels // layer.groups
    for g, i, j in itertools.product(range(layer.groups), range(height), range(width)):
        channels = slice(g * inside, (g + 1) * inside)
        outputs = slice(g * outside, (g + 1) * outside)
        top, left = i * sy, j * sx
        taps = x[:, channels, top : top + dy * rows : dy, left : left + dx * columns : dx]
        weight = layer.weight[outputs].flatten(1)
        y[:, outputs, i, j] = product(taps.flatten(1), weight)
        if layer.bias is not None:
            y[:, outputs, i, j] += layer.bias[outputs].float()
    return y.to(x.dtype)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3},
    "one tap": {"kernel_size": 1, "bias": False},
    "strides": {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 2)},
    "dilation": {"kernel_size": (2, 3), "dilation": (3, 2), "padding": 2},
    "groups": {"kernel_size": 3, "groups": 2, "padding": 1},
    "depthwise": {"kernel_size": 3, "groups": 4, "padding": "same"},
    "even taps, same": {"kernel_size": (2, 4), "padding": "same"},
    "valid": {"kernel_size": 3, "padding": "valid"},
    "reflect": {"kernel_size": 3, "padding": 2, "padding_mode": "reflect"},
    "replicate": {"kernel_size": 3, "padding": (2, 1), "padding_mode": "replicate"},
    "circular": {"kernel_size": 3, "padding": "same", "padding_mode": "circular"},
    "half": {"kernel_size": 3, "padding": 1, "dtype": torch.float16},
    "bfloat16": {"kernel_size": 3, "padding": 1, "dtype": torch.bfloat16},
}
PADDING = {"zeros": "constant"}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("how", CONVOLUTIONS)
def test_conv2d(how: str, same: Same, golden_product: Product) -> None:
    options = CONVOLUTIONS[how]
    layer = nn.Conv2d(4, 6 if options.get("groups") != 4 else 8, **options)
    x = torch.randn(2, 4, 9, 8).to(options.get("dtype", torch.float32))
    padded = nn.functional.pad(
        x,
        layer._reversed_padding_repeated_twice,
        PADDING.get(layer.padding_mode, layer.padding_mode),
    )
    expected = convolve(layer, padded, golden_product)
    converted = convert(layer)
    assert same(converted(x), expected)
    assert converted(x).shape == layer(x).shape
    assert same(converted(x[0]), expected[0])
    assert same(converted(x.to(memory_format=torch.channels_last)), expected)
    assert converted(x[:0]).shape == layer(x[:0]).shape


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("how", ["plain", "strides", "groups", "same", "circular"])
def test_conv1d_is_conv2d_of_one_row(how: str, same: Same) -> None:
    options: dict[str, Any] = {
        "plain": {"kernel_size": 3, "dilation": 2},
        "strides": {"kernel_size": 5, "stride": 3, "padding": 4},
        "groups": {"kernel_size": 3, "groups": 2},
        "same": {"kernel_size": 4, "padding": "same"},
        "circular": {"kernel_size": 3, "padding": 2, "padding_mode": "circular"},
    }[how]
    layer = nn.Conv1d(4, 6, **options)
    row = nn.Conv2d(4, 6, (1, options["kernel_size"]), groups=layer.groups)
    row.stride, row.dilation = (1, *layer.stride), (1, *layer.dilation)
    row.load_state_dict({"weight": layer.weight.unsqueeze(2), "bias": layer.bias})
    x = torch.randn(3, 4, 17)
    mode = PADDING.get(layer.padding_mode, layer.padding_mode)
    padded = nn.functional.pad(x, layer._reversed_padding_repeated_twice, mode)
    converted = convert(layer)
    assert same(converted(x), convert(row)(padded.unsqueeze(2)).squeeze(2))
    assert converted(x).shape == layer(x).shape
    assert same(converted(x[1]), converted(x)[1])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 9, 9), r"conv: input must have 3 or 4 axes and 4 channels, not shape \(2, 3, 9"),
        ((4, 9), "conv: input must have 3 or 4 axes"),
        ((2, 4, 2, 9), r"conv: padded input must be at least as large as the kernel, not \(2, 9"),
    ],
)
def test_convolutions_refuse_other_shapes(shape: tuple[int, ...], message: str) -> None:
    model = nn.Sequential()
    model.add_module("conv", nn.Conv2d(4, 2, 3))
    with pytest.raises(ValueError, match=message):
        convert(model)(torch.zeros(shape))


def heads_of(layer: nn.MultiheadAttention, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Inputs of the three projections with their weights and biases, batch first."""
    if layer.in_proj_weight is not None:
        weights = list(layer.in_proj_weight.chunk(3))
    else:
        weights = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight]
    biases = [None] * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    return list(zip((q, k, v), weights, biases, strict=True))


def attend(
    layer: nn.MultiheadAttention,
    inputs: tuple[Tensor, Tensor, Tensor],
    product: Product,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Attention of batch-first inputs, head by head; `mask` is added to scores (N, H, L, S)."""
    projected = []
    for x, weight, bias in heads_of(layer, *inputs):
        projected.append(product(x, weight) + (0 if bias is None else bias))
    q, k, v = projected
    if layer.bias_k is not None:
        k = torch.cat([k, layer.bias_k.repeat(len(k), 1, 1)], 1)
        v = torch.cat([v, layer.bias_v.repeat(len(v), 1, 1)], 1)
    if layer.add_zero_attn:
        k = torch.cat([k, torch.zeros_like(k[:, :1])], 1)
        v = torch.cat([v, torch.zeros_like(v[:, :1])], 1)
    size = layer.head_dim
    heads = []
    weights = torch.empty(len(q), layer.num_heads, q.shape[1], k.shape[1])
    scores = torch.empty_like(weights)
    for n, h in itertools.product(range(len(q)), range(layer.num_heads)):
        part = slice(h * size, (h + 1) * size)
        scores[n, h] = product(q[n, :, part] * size**-0.5, k[n, :, part])
    weights = (scores if mask is None else scores + mask).softmax(-1)
    for n, h in itertools.product(range(len(q)), range(layer.num_heads)):
        part = slice(h * size, (h + 1) * size)
        heads.append(product(weights[n, h], v[n, :, part].mT))
    y = torch.stack(heads).unflatten(0, (len(q), -1)).transpose(1, 2).flatten(2)
    y = product(y, layer.out_proj.weight)
    return y + (0 if layer.out_proj.bias is None else layer.out_proj.bias), weights


ATTENTION: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
    "other sizes": {"kdim": 20, "vdim": 13},
    "more keys": {"add_bias_kv": True, "add_zero_attn": True},
}


@pytest.mark.parametrize("masks", ["none", "bool", "float", "for each head", "padding", "both"])
@pytest.mark.parametrize("how", ATTENTION)
def test_multihead_attention(how: str, masks: str, same: Same, golden_product: Product) -> None:
    layer = nn.MultiheadAttention(24, 3, **ATTENTION[how])
    nn.init.normal_(layer.out_proj.weight)
    if layer.in_proj_bias is not None:
        nn.init.normal_(layer.in_proj_bias)
    query, key, value = (
        torch.randn(2, length, size) for length, size in ((5, 24), (7, layer.kdim), (7, layer.vdim))
    )
    attn_mask = padding = None
    if masks in ("bool", "both"):
        attn_mask = torch.rand(5, 7) > 0.7
        attn_mask[:, 0] = False
    if masks == "float":
        attn_mask = torch.randn(5, 7)
    if masks == "for each head":
        attn_mask = torch.randn(6, 5, 7)
    if masks in ("padding", "both"):
        padding = torch.zeros(2, 7, dtype=torch.bool)
        padding[1, 4:] = True
    mask = torch.zeros(2, 3, 5, 7)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        mask += torch.zeros(5, 7).masked_fill(attn_mask, -torch.inf)
    elif attn_mask is not None:
        mask += attn_mask.view(-1, 3, 5, 7) if attn_mask.ndim == 3 else attn_mask
    if padding is not None:
        mask += torch.zeros(2, 1, 1, 7).masked_fill(padding[:, None, None], -torch.inf)
    extra = 2 if how == "more keys" else 0
    added = None if masks == "none" else nn.functional.pad(mask, (0, extra))
    y, weights = attend(layer, (query, key, value), golden_product, added)
    inputs = (query, key, value)
    if not layer.batch_first:
        y, inputs = y.transpose(0, 1), tuple(x.transpose(0, 1) for x in inputs)
    converted = convert(layer)
    options = {"attn_mask": attn_mask, "key_padding_mask": padding}
    got, got_weights = converted(*inputs, **options)
    assert same(got, y)
    assert same(got_weights, weights.mean(1))
    assert same(converted(*inputs, **options, average_attn_weights=False)[1], weights)
    got, none = converted(*inputs, **options, need_weights=False)
    assert none is None
    assert same(got, y)
    ours, theirs = (m(*inputs, **options) for m in (converted, layer))
    assert [x.shape for x in ours] == [x.shape for x in theirs]
    assert (ours[0] - theirs[0]).abs().max() < 0.15 * theirs[0].abs().max()


def test_attention_without_a_batch(same: Same) -> None:
    layer = nn.MultiheadAttention(24, 3)
    q, k = torch.randn(5, 24), torch.randn(7, 24)
    padding = torch.arange(7) > 4
    converted = convert(layer)
    y, weights = converted(q, k, k, key_padding_mask=padding)
    batch_y, batch_weights = converted(
        q.unsqueeze(1), k.unsqueeze(1), k.unsqueeze(1), key_padding_mask=padding.unsqueeze(0)
    )
    assert same(y, batch_y.squeeze(1))
    assert same(weights, batch_weights.squeeze(0))
    assert y.shape == layer(q, k, k)[0].shape


def test_attention_hints_dropout_and_rows_without_keys(same: Same) -> None:
    layer = nn.MultiheadAttention(24, 3, dropout=0.5, batch_first=True)
    converted = convert(layer)
    x = torch.randn(2, 6, 24)
    causal = torch.ones(6, 6, dtype=torch.bool).triu(1)
    assert not same(converted(x, x, x)[0], converted(x, x, x)[0])
    assert (converted(x, x, x, average_attn_weights=False)[1] == 0).any()
    converted.eval()
    hinted = converted(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0]
    assert same(hinted, converted(x, x, x, attn_mask=causal)[0])
    with pytest.raises(ValueError, match=r"multiheadattention: is_causal needs attn_mask"):
        converted(x, x, x, is_causal=True)
    nothing = torch.ones(2, 6, dtype=torch.bool)
    y, weights = converted(x, x, x, key_padding_mask=nothing)
    assert not weights.any()
    assert same(y, layer.out_proj.bias.expand(2, 6, 24))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"attn_mask": torch.zeros(5, 6)}, ValueError, r"attn_mask must have shape \(6, 6\) or"),
        ({"attn_mask": torch.zeros(6, 6, dtype=torch.int64)}, TypeError, "must be bool or float"),
        ({"key_padding_mask": torch.zeros(3, 6)}, ValueError, r"key_padding_mask must have shape"),
    ],
)
def test_attention_refuses_other_masks(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    x = torch.randn(2, 6, 24)
    converted = convert(nn.MultiheadAttention(24, 3, batch_first=True))
    with pytest.raises(error, match=message):
        converted(x, x, x, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((40,), (40,)),
        ((40,), (40, 3)),
        ((5, 40), (40,)),
        ((5, 40), (40, 3)),
        ((2, 5, 40), (40, 3)),
        ((5, 40), (2, 40, 3)),
        ((40,), (2, 40, 3)),
        ((2, 5, 40), (2, 40)),
        ((4, 1, 5, 40), (3, 40, 2)),
        ((2, 5, 0), (2, 0, 3)),
        ((0, 5, 40), (0, 40, 3)),
    ],
)
def test_matmul(
    left: tuple[int, ...],
    right: tuple[int, ...],
    dtype: torch.dtype,
    same: Same,
    golden_product: Product,
) -> None:
    if right == (2, 40):
        right = (2, 40, 1)
    a, b = torch.randn(left).to(dtype), torch.randn(right).to(dtype)
    expected = torch.matmul(a, b)
    got = matmul(a, b)
    assert got.shape == expected.shape
    assert got.dtype == dtype
    assert same(convert(MatMul())(a, b), got)
    assert torch.equal(MatMul()(a, b), expected)
    rows = a if a.ndim > 1 else a[None]
    columns = b if b.ndim > 1 else b[:, None]
    leading = torch.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows, columns = (
        x.expand(*leading, *x.shape[-2:]).reshape(leading.numel(), *x.shape[-2:])
        for x in (rows, columns)
    )
    parts = [golden_product(x, y.mT) for x, y in zip(rows, columns, strict=True)]
    if parts:
        assert same(got, torch.stack(parts).reshape(got.shape).to(dtype))


def test_bmm(same: Same) -> None:
    a, b = torch.randn(3, 4, 40), torch.randn(3, 40, 5)
    assert same(bmm(a, b), matmul(a, b))
    assert same(bmm(a, b, block=8), matmul(a, b, block=8))
    with pytest.raises(ValueError, match=r"shapes \(G, M, K\) and \(G, K, N\), not \(4, 40\)"):
        bmm(a[0], b)


def test_operands_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TypeError, match="matmul: left operand and right operand must have one"):
        matmul(torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float16))
    with pytest.raises(ValueError, match="must agree in K, not have 3 and 4"):
        matmul(torch.zeros(2, 3), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="operands must have at least one axis"):
        matmul(torch.tensor(1.0), torch.zeros(4, 2))
    with pytest.raises(TypeError, match="must be float32, bfloat16, float16 or float64"):
        matmul(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(3, 2, dtype=torch.int64))


def test_layers_without_inputs_give_the_bias(same: Same) -> None:
    with pytest.warns(UserWarning, match="zero-element"):
        layer = nn.Linear(0, 3)
    nn.init.normal_(layer.bias)
    assert same(convert(layer)(torch.zeros(2, 0)), layer.bias.expand(2, 3))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_values_that_are_not_finite(value: float, same: Same, golden_product: Product) -> None:
    model = nn.Sequential(nn.Linear(40, 40), nn.Linear(40, 3))
    x = torch.randn(2, 40)
    x[1, 7] = value
    with pytest.raises(ValueError, match=rf"0: input must be finite: element .* is {value}"):
        convert(model)(x)
    layer = nn.Linear(40, 3)
    expected = golden_product(x, layer.weight, nonfinite="saturate") + layer.bias
    assert same(convert(layer, nonfinite="saturate")(x), expected)
    with torch.no_grad():
        model[1].weight[2, 3] = value
    with pytest.raises(ValueError, match=r"1: weight must be finite"):
        convert(model)(torch.randn(2, 40))


def test_the_layer_is_named_where_dtypes_differ() -> None:
    model = convert(nn.Sequential(nn.Linear(4, 4)))
    with pytest.raises(
        TypeError, match=r"0: input and weight must have one dtype, not torch\.float16"
    ):
        model(torch.zeros(1, 4, dtype=torch.float16))
    with pytest.raises(ValueError, match="0: input and weight must agree in K, not have 5 and 4"):
        model(torch.zeros(1, 5))


def test_a_nan_of_the_bias_is_the_one_nan(same: Same) -> None:
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.bias.view(torch.int32).copy_(torch.tensor([-1, 0x7F800001]))
    y = convert(layer)(torch.ones(1, 4))
    assert y.view(torch.int32).tolist() == [[0x7FC00000] * 2]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": (2, 1, 3), "padding": (1, 0, 2), "dilation": (1, 2, 1)},
        {"groups": 2, "padding": "same", "padding_mode": "circular", "bias": False},
    ],
)
def test_convolutions_of_volumes(options: dict[str, Any], same: Same) -> None:
    layer, x = nn.Conv3d(4, 6, (2, 3, 3), **options), torch.randn(2, 4, 5, 6, 7)
    y = convert(layer)(x)
    assert same(y, convert(layer, "golden")(x))
    exact = layer(x)
    assert y.shape == exact.shape
    assert (y - exact).abs().max() < 0.1 * exact.abs().max()
    assert same(convert(layer)(x[0]), convert(layer)(x[:1])[0])


def test_volumes_are_blocked_in_the_order_of_the_weight(golden_product: Any, same: Same) -> None:
    layer, x = nn.Conv3d(3, 4, 3, bias=False), torch.randn(1, 3, 3, 3, 3)
    expected = golden_product(x.flatten(1), layer.weight.flatten(1))
    assert same(convert(layer)(x).flatten(1), expected)


NO_TENSORS = [np.ones((2, 4), np.float32), [[1.0, 2.0]], None, 1.0]
LAYERS_OF_TENSORS: list[nn.Module] = [
    nn.Linear(4, 4),
    nn.Conv1d(2, 2, 1),
    nn.ConvTranspose1d(2, 2, 1),
]


@pytest.mark.parametrize("layer", LAYERS_OF_TENSORS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("x", NO_TENSORS, ids=lambda x: type(x).__name__)
def test_what_is_no_tensor_is_refused(layer: nn.Module, x: Any) -> None:
    message = f"{type(layer).__name__.lower()}: input must be a tensor, not {type(x).__name__}$"
    with pytest.raises(TypeError, match=message):
        convert(layer)(x)
    with pytest.raises(ValueError, match=r"input must have .*, not shape \(\)"):
        convert(layer)(torch.tensor(1.0))


@pytest.mark.parametrize("x", NO_TENSORS, ids=lambda x: type(x).__name__)
def test_operands_that_are_no_tensors_are_refused(x: Any) -> None:
    y = torch.ones(4, 4)
    calls: dict[str, Callable[[], Any]] = {
        "bilinear": lambda: convert(nn.Bilinear(4, 4, 4))(y, x),
        "matmul": lambda: convert(MatMul())(y, x),
        "multiheadattention.scores": lambda: convert(nn.MultiheadAttention(4, 1))(y, y, x),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"{name}: input must be a tensor, not"):
            call()
    with pytest.raises(TypeError, match="matmul: input must be a tensor, not"):
        matmul(x, y)


class Several(nn.Module):
    """Products of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 3, padding=1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(self.conv(x).mT)
        return y @ y.mT + torch.einsum("bik,bjk->bij", y, y)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_exported_models_take_any_batch(strict: bool, same: Same) -> None:
    model = convert(Several())
    sizes = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(
        model, (torch.randn(2, 4, 6),), dynamic_shapes=sizes, strict=strict
    )
    for count in (3, 7):
        x = torch.randn(count, 4, 6)
        assert same(exported.module()(x), model(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("model", [nn.Linear(4, 4), Several(), nn.GRU(4, 4)], ids=type)
def test_tracing_is_refused(model: nn.Module) -> None:
    with pytest.raises(RuntimeError, match=r"torch\.jit\.trace cannot follow converted models"):
        torch.jit.trace(convert(model), torch.randn(2, 4, 4))


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)


@pytest.mark.parametrize("shape", [(5, 7), (6, 1, 5, 7), (2, 6, 3, 5, 7)])
def test_scores_masked_in_place_have_the_same_bits(shape: tuple[int, ...], same: Same) -> None:
    """Without gradients; the last mask has more axes than the scores."""
    q, k, v = torch.randn(6, 3, 5, 8), torch.randn(6, 3, 7, 8), torch.randn(6, 3, 7, 8)
    mask = torch.randn(shape)
    mask[..., 2, :] = -torch.inf
    mask[..., 3, 1:] = -torch.inf
    attention = convert(Attention())
    with torch.inference_mode():
        found = attention(q, k, v, mask)
    assert same(found, attention(q, k, v, mask))
    assert not found[..., 2, :].any()
