"""Torch's default dtype and device, which change nothing here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import axs6
from axs6.torch import (
    ErrorFeedback,
    Lfsr,
    QuantisedGradients,
    convert,
    encode,
    fake_quantise,
    kernels,
    load_packed,
    matmul,
    save_packed,
)

Same = Callable[[Tensor, Tensor], bool]

DEFAULTS = [torch.bfloat16, torch.float16, torch.float64, "meta"]


@contextmanager
def default(what: torch.dtype | str) -> Iterator[None]:
    if isinstance(what, str):
        with torch.device(what):
            yield
        return
    torch.set_default_dtype(what)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("form", ["native", None])
@pytest.mark.parametrize("format", ["axs6", "mx9", "nvfp4", "int8_float32_t0"])
@pytest.mark.parametrize("what", DEFAULTS, ids=str)
def test_encoding_and_products(
    what: torch.dtype | str, format: str, form: str | None, same: Same
) -> None:
    x, words = torch.randn(4, 40), torch.randint(1 << 16, (4, 40))
    inputs = [x, x.bfloat16(), x.half(), x.double(), x * 1e-39]

    def results() -> list[Tensor]:
        found = []
        for y in inputs:
            blocks = encode(y, format)
            found += [torch.from_numpy(axs6.decode(blocks)), fake_quantise(y, format)]
            found += [fake_quantise(y, format, "stochastic", random=words)]
            found += [fake_quantise(y / 0, format, nonfinite="saturate")]
            found += [matmul(y, y.mT, format), matmul(y[:, :0], y.mT[:0], format)]
        return found

    with kernels.use(form):
        expected = results()
        with default(what):
            assert all(same(a, b) for a, b in zip(results(), expected, strict=True))


@pytest.mark.parametrize("what", DEFAULTS, ids=str)
def test_models_and_their_files(what: torch.dtype | str, tmp_path: Path, same: Same) -> None:
    model = nn.Sequential(nn.Linear(40, 8), nn.Conv1d(4, 8, 3), nn.ConvTranspose1d(8, 3, 2))
    x, path = torch.randn(4, 40), tmp_path / "x.safetensors"
    expected = convert(model)(x)
    with default(what):
        for backend in ("emulated", "golden"):
            assert same(convert(model, backend)(x), expected)
        save_packed(convert(model), path)
        again = convert(model)
        load_packed(again, path)
        assert same(again(x), expected)


@pytest.mark.parametrize("what", DEFAULTS, ids=str)
def test_modules_with_a_state(what: torch.dtype | str, same: Same) -> None:
    x, target = torch.randn(4, 40), nn.Parameter(torch.ones(4, 40))

    def results() -> list[Tensor]:
        words, feedback = Lfsr(32, device="cpu"), ErrorFeedback((4, 40), device="cpu")
        gradients = QuantisedGradients([target], feedback=True)
        found = [words(x), feedback(x), feedback(x), feedback.error.clone()]
        for _ in range(2):
            target.grad = x.clone()
            optimiser = torch.optim.SGD([target], 1.0)
            gradients(optimiser, (optimiser,), {})
            found.append(target.grad)
        return found

    expected = results()
    with default(what):
        assert all(same(a, b) for a, b in zip(results(), expected, strict=True))
