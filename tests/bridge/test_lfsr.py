import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from axs6.golden import lfsr
from axs6.torch import Lfsr, fake_quantise


@pytest.mark.parametrize(("lanes", "bits"), [(32, 16), (8, 1), (3, 7), (16, 32)])
def test_the_words_are_those_of_the_golden_registers(lanes: int, bits: int) -> None:
    ours, golden = Lfsr(lanes, 12345, bits), lfsr.Lfsr(lanes, 12345, bits)
    for count in (1, 0, 2, 5, 64, 1000):
        words = ours.draw(count)
        assert words.dtype == torch.int64
        assert np.array_equal(words.numpy(), golden.draw(count))
        assert np.array_equal(ours.states.numpy(), golden.states)


def test_every_block_takes_a_draw_in_the_order_of_memory() -> None:
    source, golden = Lfsr(8), lfsr.Lfsr(8)
    words = source(torch.zeros(3, 2, 13))
    drawn = golden.draw(3 * 2 * 2).reshape(3, 2, 16)
    assert np.array_equal(words.numpy(), drawn[..., :13])
    for shape in ((0, 5), (3, 0), (2,)):
        blocks = -(-shape[-1] // 8) * int(np.prod(shape[:-1]))
        assert source(torch.zeros(shape)).shape == shape
        golden.draw(blocks)
        assert np.array_equal(source.states.numpy(), golden.states)


def test_the_registers_are_saved_and_copied(tmp_path: Path) -> None:
    source = Lfsr(bits=16)
    source.draw(1234)
    torch.save(source.state_dict(), tmp_path / "words.pt")
    again, twin = Lfsr(seed=1, bits=16), copy.deepcopy(source)
    again.load_state_dict(torch.load(tmp_path / "words.pt"))
    expected = source.draw(77)
    assert torch.equal(again.draw(77), expected)
    assert torch.equal(twin.half().draw(77), expected)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^seed must be an integer from 1 to 4294967295, not 0$"):
        Lfsr(seed=0)
    with pytest.raises(ValueError, match=r"^random_bits must be an integer from 1 to 32, not 0$"):
        Lfsr(bits=0)


def bias_in_standard_errors(
    x: Tensor, quantise: Callable[[Tensor], Tensor], bits: int, count: int
) -> Tensor:
    """How far the mean of many roundings of values (K,) is from the predicted one.

    That is floor(v * 2^R) / 2^R for the exact magnitude v, in steps; a fraction f of it varies
    with f (1 - f). A value whose magnitude never varies must be exact.
    """
    scale = torch.exp2(x.double().abs().max().log2().floor() + 1)
    predicted = (31 * x.double().abs() / scale * 2**bits).floor() / 2**bits
    fraction = predicted - predicted.floor()
    error = (fraction * (1 - fraction) / count).sqrt().clamp(min=1e-9)
    decoded = quantise(x.expand(count, -1).contiguous())
    mean = (decoded.double().abs() * 31 / scale).round().mean(0)
    return (mean - predicted).abs() / error


@pytest.mark.parametrize("bits", [4, 16])
@pytest.mark.parametrize("source", ["registers", "generator"])
def test_stochastic_rounding_has_the_predicted_mean(source: str, bits: int) -> None:
    registers = Lfsr(bits=bits)
    generator = torch.Generator().manual_seed(1)

    def quantise(x: Tensor) -> Tensor:
        words = registers(x)
        if source == "generator":
            words = torch.randint(1 << bits, x.shape, generator=generator)
        return fake_quantise(x, rounding="stochastic", random=words, random_bits=bits)

    x = torch.randn(32)
    assert (bias_in_standard_errors(x, quantise, bits, 20_000) <= 4).all()


def test_the_mean_gives_nearest_rounding_and_other_widths_away() -> None:
    x = torch.randn(32)
    assert (bias_in_standard_errors(x, fake_quantise, 16, 20_000) > 4).any()

    def coarse(x: Tensor) -> Tensor:
        # Words of 4 bits where 16 are said: they hardly ever round up.
        return fake_quantise(x, rounding="stochastic", random=Lfsr(bits=4)(x))

    assert (bias_in_standard_errors(x, coarse, 16, 20_000) > 4).any()
