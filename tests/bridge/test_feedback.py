import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import axs6
from axs6.golden.check.cases import inputs
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.lfsr import Lfsr as GoldenLfsr
from axs6.torch import ErrorFeedback, Lfsr

Same = Callable[[Tensor, Tensor], bool]

OPTIONS: list[dict[str, Any]] = [
    {"rounding": "nearest"},
    {"rounding": "toward_zero", "block": 16},
    {"rounding": "stochastic", "random_bits": 8},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["rounding"])
def test_every_bit_is_that_of_the_golden_model(
    options: dict[str, Any], rng: np.random.Generator, same: Same, mode: Any
) -> None:
    """Many steps over values of all magnitudes, subnormals and infinities among them."""
    size, bits = options.get("block", 32), options.get("random_bits", 16)
    kind = inputs.KINDS[0]
    blocks = np.concatenate(
        [inputs.special_blocks(kind, size, rng), inputs.random_blocks(kind, size, 100, rng)]
    )
    feedback, error = ErrorFeedback(blocks.shape), np.zeros(blocks.shape, np.float32)
    ours, golden = Lfsr(size, bits=bits), GoldenLfsr(size, bits=bits)
    for step in range(6):
        patterns = np.roll(blocks, step % 3, axis=0).astype(np.uint32)
        x = torch.from_numpy(patterns.view(np.int32)).view(torch.float32)
        words: tuple[Any, Any] = (None, None)
        if options["rounding"] == "stochastic":
            words = (ours(x), golden.draw(len(blocks)))
        with mode():
            values = feedback(x, random=words[0], nonfinite="saturate", **options)
        expected, error = encode_with_feedback(
            patterns.view(np.float32), error, random=words[1], nonfinite="saturate", **options
        )
        assert same(values, torch.from_numpy(axs6.decode(expected)))
        assert same(feedback.error, torch.from_numpy(error))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["rounding"])
def test_the_mean_converges_to_the_input(options: dict[str, Any]) -> None:
    """Of n decoded values nothing is lost but the last error, and what FP32 takes from the sums c.

    So their mean is within max|e| / n of the input, plus 2^-24 of the largest |c|. That is below 4,
    where an error is 4 / 31 at most.
    """
    x = torch.randn(64, generator=torch.Generator().manual_seed(3)).clamp(-1.9, 1.9)
    feedback, source = ErrorFeedback(x.shape), Lfsr(options.get("block", 32), bits=8)
    total, plain = torch.zeros(64, dtype=torch.float64), torch.zeros(64, dtype=torch.float64)
    for n in range(1, 401):
        words = source(x) if options["rounding"] == "stochastic" else None
        total += feedback(x, random=words, **options).double()
        plain += axs6_values(x, words, options)
        if n in (1, 10, 100, 400):
            bound = float(feedback.error.abs().max()) / n + 2.0**-23
            assert (total / n - x).abs().max() <= bound
            assert bound <= 4 / 31 / n + 2.0**-23
    # Without feedback the same bound is missed by far.
    assert (plain / n - x).abs().max() > 10 * bound


def axs6_values(x: Tensor, words: Tensor | None, options: dict[str, Any]) -> Tensor:
    random = None if words is None else words.numpy()
    return torch.from_numpy(axs6.decode(axs6.encode(x.numpy(), random=random, **options)))


def test_the_error_is_saved_and_moves(tmp_path: Path, same: Same) -> None:
    feedback = ErrorFeedback((3, 40))
    for _ in range(5):
        feedback(torch.randn(3, 40) * 1e-38)
    assert feedback.error.any()
    torch.save(feedback.state_dict(), tmp_path / "error.pt")
    again, twin = ErrorFeedback((3, 40)), copy.deepcopy(feedback)
    again.load_state_dict(torch.load(tmp_path / "error.pt"))
    assert same(again.error, feedback.error)
    x = torch.randn(3, 40)
    expected = feedback(x)
    for other in (again, twin):
        assert same(other(x), expected)
        assert same(other.error, feedback.error)
    assert feedback.to("meta").error.device.type == "meta"


def test_the_gradient_passes_through() -> None:
    x = torch.randn(2, 40, requires_grad=True)
    feedback, grad = ErrorFeedback(x.shape), torch.randn(2, 40)
    for _ in range(2):
        feedback(x).backward(grad)
    assert x.grad is not None
    assert torch.equal(x.grad, 2 * grad)
    assert not feedback.error.requires_grad


def test_bad_arguments_are_refused_and_leave_the_error() -> None:
    feedback = ErrorFeedback((2, 8))
    feedback(torch.randn(2, 8), block=8)
    before = feedback.error.clone()
    with pytest.raises(TypeError, match=r"^values must be float32, not torch\.bfloat16$"):
        feedback(torch.zeros(2, 8).bfloat16())
    with pytest.raises(
        ValueError, match=r"^fc1 must have the shape of the error \(2, 8\), not \(8,\)$"
    ):
        feedback(torch.zeros(8), name="fc1")
    with pytest.raises(ValueError, match=r"^fc1 must be finite: element \(1, 0\) is nan"):
        feedback(torch.tensor([[0.0], [torch.nan]]).expand(2, 8), name="fc1")
    with pytest.raises(ValueError, match="needs random"):
        feedback(torch.zeros(2, 8), rounding="stochastic")
    assert torch.equal(feedback.error, before)
    with pytest.raises(TypeError, match=r"^error must be float32, not torch\.float16$"):
        feedback.half()(torch.zeros(2, 8))
