"""Torch's operations in place of compiled kernels, on the CPU and on a GPU where there is one."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

import axs6
from axs6.golden.formats import CATALOG, FP32, Real, Rule, block_format
from axs6.torch import anywhere, convert, fake_quantise, kernels
from axs6.torch.backends import Anywhere, Golden, backend_of
from axs6.torch.lanes import values
from axs6.torch.options import ProductOptions

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

ENCODED = [name for name in CATALOG if kernels.encodes(block_format(name))]
RULED = [
    str(block_format(name).with_rule(rule))
    for name in ("mx6", "mxfp4", "mxint8")
    for rule in Rule
    if rule is not Rule.FLOOR
]
WIDE = [name for name in ENCODED if Real(FP32) in [x.scale for x in CATALOG[name].blocked]]
"""Formats whose sums, with the significands of FP32 scales, are wider than float64."""
MULTIPLIED = [
    *((name, name) for name in ENCODED if name not in WIDE),
    *(("mxfp8_e4m3", "mxfp8_e5m2"), ("mxfp4", "mxint8"), ("fp8_e5m2", "int8")),
]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=NO_GPU)])
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


def values_of(rng: Generator, kind: str) -> NDArray[np.float32]:
    shape = (6, 150)
    x = rng.standard_normal(shape)
    if kind == "far apart":
        x *= np.exp2(rng.integers(-140, 120, shape))
    elif kind == "subnormal":
        x *= np.exp2(rng.integers(-149, -120, shape).astype(np.float64))
    elif kind == "large":
        x = np.clip(x * 2.0**126, -3e38, 3e38)
    elif kind == "zeros":
        x = np.where(rng.random(shape) < 0.7, 0, x) * np.where(rng.random(shape) < 0.5, -1, 1)
    elif kind == "patterns":
        x = rng.integers(0, 1 << 32, shape, dtype=np.uint32).view(np.float32)
        x = np.where(np.isfinite(x), x, 1)
    return x.astype(np.float32)


KINDS = ("normal", "far apart", "subnormal", "large", "zeros", "patterns")


def bits_of(x: NDArray[np.float32] | Tensor) -> NDArray[np.uint32]:
    array = x.cpu().numpy() if isinstance(x, Tensor) else x
    return np.ascontiguousarray(array).view(np.uint32)


@pytest.mark.parametrize("name", [*ENCODED, *RULED])
def test_values_are_golden(name: str, device: torch.device, rng: Generator) -> None:
    fmt = block_format(name)
    for kind in KINDS:
        x = values_of(rng, kind)
        got = values(torch.from_numpy(x).to(device), fmt)
        assert got.device.type == device.type
        assert np.array_equal(bits_of(got), bits_of(axs6.decode(axs6.encode(x, fmt)))), kind


@pytest.mark.parametrize(("left", "right"), MULTIPLIED)
def test_products_are_golden(left: str, right: str, device: torch.device, rng: Generator) -> None:
    formats = (block_format(left), block_format(right))
    for kind in KINDS:
        given = [values_of(rng, kind), values_of(rng, kind)[:5]]
        blocks = [axs6.encode(x, fmt) for x, fmt in zip(given, formats, strict=True)]
        expected = bits_of(axs6.matmul(*blocks))
        a, b = (
            anywhere.prepare(torch.from_numpy(x).to(device)[None], fmt)
            for x, fmt in zip(given, formats, strict=True)
        )
        assert np.array_equal(bits_of(anywhere.product(a, b)[0]), expected), kind
        if not any(level.group == "tensor" for fmt in formats for level in fmt.levels):
            a, b = (
                anywhere.take(axs6.encode(x[None], fmt), device)
                for x, fmt in zip(given, formats, strict=True)
            )
            assert np.array_equal(bits_of(anywhere.product(a, b)[0]), expected), kind


def test_products_of_all_formats_are_taken() -> None:
    pairs = [tuple(map(block_format, names)) for names in MULTIPLIED]
    assert [pair for pair in pairs if not anywhere.multiplies(*pair)] == []
    assert not any(anywhere.multiplies(CATALOG[name], CATALOG[name]) for name in WIDE)


def wide_sums(a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[Any, Any]:
    """A product of integers, once by parts and once from Python's integers, as FP32 patterns."""
    left, right = (torch.from_numpy(x.astype(np.float64))[None] for x in (a, b))
    found = anywhere._wide_sums(left, right.mT)[0]
    exact = a.astype(object) @ b.astype(object).T
    return bits_of(found.float()), np.vectorize(nearest, otypes=[np.uint32])(exact)


def nearest(x: int) -> int:
    """The FP32 pattern of an integer, ties to even."""
    size = abs(x)
    drop = max(0, size.bit_length() - 24)
    kept, rest = size >> drop, size & (1 << drop) - 1
    kept += 2 * rest > 1 << drop or (2 * rest == 1 << drop and kept & 1)
    return int(bits_of(np.array([np.float32(float(kept) * 2.0**drop * (1 if x >= 0 else -1))]))[0])


def test_wide_sums_are_rounded_once(rng: Generator) -> None:
    """Sums next to the middle of two FP32 values, where a sticky bit decides, and small ones."""
    for _ in range(300):
        bits = rng.integers(1, 33, (2, 8, 4))
        a, b = (rng.integers(-(1 << 33), 1 << 33, bits[0].shape) >> n for n in 33 - bits)
        found, exact = wide_sums(a, b)
        assert np.array_equal(found, exact)
    tops = rng.integers(1 << 23, 1 << 24, 500) * 2 + 1
    for shift, least in ((9, 1), (20, 1), (33, -1), (33, 1), (33, 0)):
        a = np.stack([tops << 8, np.full(500, least)], axis=1)
        b = np.array([[1 << min(shift, 32), 1]])
        found, exact = wide_sums(a, b)
        assert np.array_equal(found, exact)


FORMATS: dict[str, dict[str, Any]] = {
    "AXS-6": {},
    "shifts": {"format": "mx9", "gradients": "mx6"},
    "two formats": {"format": "mxfp8_e4m3", "weights": "mxfp4", "gradients": "mxfp8_e5m2"},
    "scale of the tensor": {"format": "int8"},
    "real scales": {"format": "nvfp4"},
    "zero points": {"format": "uint8"},
    "accumulator": {"format": "mxfp8_e4m3", "accumulator": "hopper_fp8"},
}


@pytest.mark.parametrize("chosen", FORMATS.values(), ids=list(FORMATS))
def test_models_are_golden(chosen: dict[str, Any], device: torch.device) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.ReLU(), nn.Linear(64, 5))
    x, found = torch.randn(2, 3, 6, 6), []
    for backend, where in (("golden", torch.device("cpu")), ("emulated", device)):
        converted = convert(model, backend, **chosen).to(where)
        given = x.to(where).requires_grad_()
        with kernels.use(None):
            y = converted(given)
            y.backward(torch.linspace(-1, 1, 10).view(2, 5).to(where))
        assert y.device.type == where.type
        gradients = [each.grad for each in converted.parameters()] if "gradients" in chosen else []
        found.append([y, *([given.grad] if gradients else []), *gradients])
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(bits_of(ours.detach()), bits_of(theirs.detach()))


def test_values_that_are_not_finite(device: torch.device) -> None:
    x = torch.randn(2, 70, device=device)
    x[0, 3], x[1, 4], x[1, 5] = torch.nan, torch.inf, -torch.inf
    with kernels.use(None):
        for name in ("mx6", "mxfp8_e4m3", "nvfp4"):
            expected = axs6.decode(axs6.encode(x.cpu().numpy(), name, nonfinite="saturate"))
            got = fake_quantise(x, name, nonfinite="saturate")
            assert np.array_equal(bits_of(got), bits_of(expected))
            with pytest.raises(ValueError, match=r"values must be finite: element \(0, 3\) is nan"):
                fake_quantise(x, name)
        layer = nn.Linear(70, 3).to(device)
        kept: dict[str, Any] = {"format": "mxfp8_e5m2", "nonfinite": "propagate"}
        y, cpu = convert(layer, **kept)(x), convert(layer, "golden", **kept).cpu()
        assert np.array_equal(bits_of(y.detach()), bits_of(cpu(x.cpu()).detach()))


def test_scales_that_are_given_and_empty_tensors(device: torch.device) -> None:
    x = torch.randn(3, 40)
    expected = axs6.decode(axs6.encode(x.numpy(), "int8", scale=0.02))
    with kernels.use(None):
        assert np.array_equal(
            bits_of(fake_quantise(x.to(device), "int8", scale=0.02)), bits_of(expected)
        )
        for shape in ((0, 40), (3, 0)):
            assert fake_quantise(torch.zeros(shape, device=device), "mx9").shape == shape
            assert fake_quantise(torch.zeros(shape, device=device), "int8").shape == shape


def test_that_the_golden_model_computes_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    options = ProductOptions.of(format="mx9", accumulator="paper,promote=7")
    backend = backend_of(options)
    with kernels.use(None):
        for _ in range(2):
            backend.prepare(torch.ones(1, 1, 8), options.weights, "x")
    assert caplog.messages == [
        "the golden model computes products of mx9 in the accumulator paper,promote=7, slowly: "
        "on cpu nothing faster has them"
    ]


def test_the_way_that_takes_the_formats_is_chosen() -> None:
    def way(**chosen: Any) -> type:
        options = ProductOptions.of(**chosen)
        backend: Any = backend_of(options)
        return type(backend.prepare(torch.ones(1, 1, 8), options.weights, "x")[0])

    with kernels.use(None):
        assert way() is way(format="mx9") is way(format="nvfp4") is Anywhere
        assert way(format="uint8") is Anywhere
        assert way(format="mx9", accumulator="paper") is Golden
