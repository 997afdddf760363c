"""Models in formats other than AXS-6: every bit is the golden model's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import axs6
from axs6.torch import bmm, convert, decode, encode, fake_quantise, kernels, matmul, profile
from axs6.torch.backends import Compiled, backend_of
from axs6.torch.options import ProductOptions

Same = Callable[[Tensor, Tensor], bool]

FORMATS: dict[str, dict[str, Any]] = {
    "a table": {"format": "nf4q6_e8m0_t16"},
    "selected elements": {"format": "if4"},
    "shifts": {"format": "mx9"},
    "two formats": {"format": "mxfp8_e4m3", "weights": "mxfp4"},
    "scale of the tensor": {"format": "int8"},
    "real scales": {"format": "nvfp4"},
    "integer scales": {"format": "vsq4"},
    "zero points": {"format": "uint8"},
    "zeros without a sign": {"format": "fp8_e4m3fnuz", "weights": "binary6p3se_float32"},
    "accumulator": {"format": "mxfp8_e5m2", "accumulator": "hopper_fp8"},
    "scales beside sums": {
        "format": "e4m3fn_float32_t32",
        "accumulator": "hopper_fp8,promote=1,scaled=true",
    },
}
"""One format for each property."""


def golden(a: Tensor, b: Tensor, options: ProductOptions, weighted: bool = True) -> Tensor:
    """(M, K) and (N, K) to (M, N)."""
    right = options.weights if weighted else options.activations
    blocks = [
        axs6.encode(x.detach().numpy(), fmt, nonfinite=options.nonfinite)
        for x, fmt in ((a, options.activations), (b, right))
    ]
    return torch.from_numpy(axs6.matmul(*blocks, options.accumulator))


@pytest.mark.parametrize("chosen", FORMATS.values(), ids=list(FORMATS))
def test_layers_are_golden(chosen: dict[str, Any], same: Same) -> None:
    options = ProductOptions.of(**chosen)
    layer, x = nn.Linear(70, 5), torch.randn(6, 70)
    assert same(convert(layer, **chosen)(x), golden(x, layer.weight, options) + layer.bias)
    conv, pixels = nn.Conv2d(6, 4, 3, groups=2, bias=False), torch.randn(2, 6, 5, 5)
    y = convert(conv, **chosen)(pixels)
    assert same(y, convert(conv, "golden", **chosen)(pixels))
    a, b = torch.randn(2, 3, 40), torch.randn(2, 40, 4)
    held = {key: value for key, value in chosen.items() if key != "weights"}
    y = bmm(a, b, **held)
    assert same(y, bmm(a, b, backend="golden", **held))
    if not any(x.group == "tensor" for x in options.activations.levels):
        for g in range(2):
            assert same(y[g], golden(a[g], b[g].mT, options, weighted=False))
            assert same(y[g], matmul(a[g], b[g], **held))


def test_the_products_of_deepseek(same: Same) -> None:
    """Tiles of weights and rows of activations; backwards too."""
    chosen = {"format": "fp8_block", "accumulator": "hopper_fp8_scaled"}
    options = ProductOptions.of(**chosen)
    layer, x = nn.Linear(300, 130), torch.randn(7, 300)
    assert same(convert(layer, **chosen)(x), golden(x, layer.weight, options) + layer.bias)
    grads = []
    for backend in ("emulated", "golden"):
        given = x.clone().requires_grad_()
        convert(layer, backend, gradients="fp8_block", **chosen)(given).square().sum().backward()
        assert given.grad is not None
        grads.append(given.grad)
    assert same(*grads)
    if kernels.chosen() is not None:
        assert type(backend_of(options)).__name__ != "Golden"
        assert kernels.takes(options.activations, options.weights.untiled, options.accumulator)
    message = r"^hopper_fp8_scaled multiplies sums of 128 lanes by the scales of blocks, and those"
    with pytest.raises(ValueError, match=message):
        convert(layer, format="mxfp8_e4m3", accumulator="hopper_fp8_scaled")


@pytest.mark.parametrize("name", ["fp8_block", "nf4", "nf4q6"])
def test_products_of_matrix_cores_under_fp32_scales(
    name: str, same: Same, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = {"format": name, "accumulator": "cdna3"}
    options = ProductOptions.of(**chosen)
    layer, x = nn.Linear(130, 5), torch.randn(3, 130)
    assert same(convert(layer, **chosen)(x), golden(x, layer.weight, options) + layer.bias)
    assert bool(caplog.messages) == (kernels.chosen() is None)


def test_a_scale_of_the_tensor_is_one_for_all_matrices(same: Same) -> None:
    a, b = torch.randn(2, 3, 40) * torch.tensor([1.0, 50.0]).view(2, 1, 1), torch.randn(2, 4, 40)
    left, right = (axs6.encode(x.numpy(), "int8") for x in (a, b))
    assert left.scales[0].shape == ()
    y = bmm(a, b.mT, "int8")
    for g in range(2):
        one = [
            axs6.encode(x[g].numpy(), "int8", scale=scales.scales[0].view(np.float32))
            for x, scales in ((a, left), (b, right))
        ]
        assert same(y[g], torch.from_numpy(axs6.matmul(*one)))


@pytest.mark.parametrize("name", ["shifts", "two formats", "accumulator"])
def test_attention_is_golden(name: str, same: Same) -> None:
    model = nn.TransformerEncoderLayer(32, 2, 40, dropout=0, batch_first=True)
    x = torch.randn(2, 5, 32)
    with profile(compare="golden") as report:
        y = convert(model, **FORMATS[name])(x)
    assert report.total.bits_different == 0
    assert len(report.rows) == 8
    assert same(y, convert(model, "golden", **FORMATS[name])(x))


@pytest.mark.parametrize("name", FORMATS)
def test_values_are_golden(name: str, same: Same) -> None:
    fmt = ProductOptions.of(**FORMATS[name]).activations
    x = torch.randn(3, 50) * torch.logspace(-6, 6, 50)
    expected = axs6.encode(x.numpy(), fmt)
    values = torch.from_numpy(axs6.decode(expected))
    got = encode(x, fmt)
    assert got.format == fmt
    assert np.array_equal(got.codes, expected.codes)
    for ours, theirs in zip(got.scales, expected.scales, strict=True):
        assert np.array_equal(ours, theirs)
    assert same(decode(got), values)
    assert same(fake_quantise(x, fmt), values)
    assert same(fake_quantise(x.double(), str(fmt)), values)


def test_rounding_is_golden_in_every_format(same: Same) -> None:
    x, words = torch.randn(4, 48), torch.randint(1 << 16, (4, 48))
    for rounding, random in (("stochastic", words), ("toward_zero", None)):
        given = None if random is None else random.numpy()
        blocks = axs6.encode(x.numpy(), "mx6", rounding, random=given)
        got = fake_quantise(x, "mx6", rounding, random=random)
        assert same(got, torch.from_numpy(axs6.decode(blocks)))


def test_the_fastest_way_that_takes_the_formats_is_chosen() -> None:
    def way(**chosen: Any) -> type:
        options = ProductOptions.of(**chosen)
        backend: Any = backend_of(options)
        return type(backend.prepare(torch.ones(1, 1, 8), options.weights, "x")[0])

    if kernels.chosen() is not None:
        assert way() is way(format="mx9") is way(**FORMATS["two formats"]) is Compiled


@pytest.mark.parametrize("nonfinite", ["saturate", "propagate"])
def test_values_that_are_not_finite(nonfinite: str, same: Same) -> None:
    layer, x = nn.Linear(70, 5, bias=False), torch.randn(6, 70)
    x[0, 3], x[1, 4], x[2, 5] = torch.nan, torch.inf, -torch.inf
    for fmt in ("mxfp8_e4m3", "mxfp8_e5m2", "fp8_e4m3"):
        chosen: dict[str, Any] = {"format": fmt, "nonfinite": nonfinite}
        y = convert(layer, **chosen)(x)
        assert same(y, golden(x, layer.weight, ProductOptions.of(**chosen)))
        assert bool(y.isfinite().all()) is (nonfinite == "saturate")
    with pytest.raises(ValueError, match=r"^0: input must be finite: element \(0, 0, 3\) is nan"):
        convert(nn.Sequential(layer), format="mxfp8_e4m3")(x)


@pytest.mark.parametrize(
    "chosen",
    [
        {"format": "mx9", "gradients": "mx9"},
        {"format": "mxfp8_e4m3", "gradients": "mxfp8_e5m2", "weights": "mxfp4"},
        {"format": "int8", "gradients": "fp8_e5m2"},
        {"format": "mx6", "gradients": "mx6", "accumulator": "paper"},
    ],
    ids=lambda chosen: chosen["gradients"],
)
def test_backward_products_are_golden(chosen: dict[str, Any], same: Same) -> None:
    options = ProductOptions.of(**chosen)
    layer, x = nn.Linear(40, 7), torch.randn(9, 40, requires_grad=True)
    converted = convert(layer, **chosen)
    grad = torch.randn(9, 7)
    converted(x).backward(grad)

    def product(g: Tensor, other: Tensor, fmt: Any) -> Tensor:
        left = axs6.encode(g.contiguous().numpy(), options.gradients)
        right = axs6.encode(other.detach().mT.contiguous().numpy(), fmt)
        return torch.from_numpy(axs6.matmul(left, right, options.accumulator))

    assert same(x.grad, product(grad, layer.weight, options.weights))
    assert same(converted.weight.grad, product(grad.mT, x, options.activations))
    assert same(converted.bias.grad, grad.sum(0))


def test_backward_products_without_a_format_are_fp32(same: Same) -> None:
    layer, x = nn.Linear(40, 7), torch.randn(9, 40, requires_grad=True)
    grad = torch.randn(9, 7)
    converted = convert(layer, format="mxfp8_e4m3", weights="mxfp4")
    converted(x).backward(grad)
    assert same(x.grad, grad @ fake_quantise(layer.weight, "mxfp4").detach())
    assert same(converted.weight.grad, grad.mT @ fake_quantise(x, "mxfp8_e4m3").detach())


def test_backward_products_in_low_precision_and_empty_batches() -> None:
    layer = convert(nn.Linear(40, 7).bfloat16(), format="mx9", gradients="mx9")
    x = torch.randn(0, 40, dtype=torch.bfloat16, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == (0, 40)
    assert not layer.weight.grad.any()
    layer(torch.randn(3, 40, dtype=torch.bfloat16)).sum().backward()
    assert layer.weight.grad.dtype == torch.bfloat16
    assert layer.weight.grad.any()


def test_text_shows_formats() -> None:
    assert "format=mx9)" in repr(convert(nn.Linear(4, 3), format="mx9"))
    chosen = {**FORMATS["two formats"], "gradients": "mxfp8_e5m2", "accumulator": "blackwell_mx"}
    shown = repr(convert(nn.Linear(4, 3), **chosen))
    assert "weights=mxfp4, activations=mxfp8_e4m3, gradients=mxfp8_e5m2" in shown
    assert "accumulator=blackwell)" in shown


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"format": "mx8"}, r"'mx8' is no block format: .*"),
        ({"format": 8}, r"format must be a string or a BlockFormat, not int"),
        ({"format": "mx9", "weights": "mxfp4"}, r"a and b must have levels of the same groups.*"),
        ({"format": "mx9", "accumulator": "fp31"}, r"accumulator must be one of .*, not 'fp31'"),
        ({"nonfinite": "propagate"}, r'nonfinite="propagate" needs a format with NaN, .*'),
        ({"format": "int8", "block": 16}, r".* has no blocks, so block=16 cannot be chosen"),
    ],
)
def test_options_that_do_not_fit_are_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^{message}$"):
        convert(nn.Linear(4, 3), **chosen)
