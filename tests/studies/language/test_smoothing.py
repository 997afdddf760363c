"""SmoothQuant's migration."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.studies.language.calibration import input_maxima
from axs6.studies.language.linear import linear_layers, shared_copy
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting
from axs6.studies.language.smoothing import smooth, smoothing
from axs6.torch import convert


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 1.0])
def test_factors_are_as_defined(alpha: float) -> None:
    inputs = torch.tensor([4.0, 0.25, 0.0, 9.0])
    weight = torch.tensor([[1.0, -2.0, 1.0, 0.0], [-0.5, 1.0, 3.0, 0.0]])
    found = smoothing(inputs, weight, alpha)
    expected = [4**alpha / 1 ** (1 - alpha), 0.25**alpha / 2 ** (1 - alpha), 1, 1]
    assert found.tolist() == pytest.approx(expected, rel=1e-15)


def test_maxima_are_those_of_all_tokens(model: LanguageModel, others: Tensor) -> None:
    found = input_maxima(model.module, others, "lm_head")
    assert set(found) == set(linear_layers(model.module, "lm_head"))
    with torch.no_grad():
        # What the first layer's projections get is the norm of the embeddings.
        inner: Any = model.module.model
        first = inner.layers[0].input_layernorm(inner.embed_tokens(others))
    assert torch.equal(found["model.layers.0.self_attn.q_proj"], first.abs().amax((0, 1)))


def test_products_in_fp32_stay(model: LanguageModel, tokens: Tensor, others: Tensor) -> None:
    smoothed = shared_copy(model.module)
    smooth(smoothed, input_maxima(smoothed, others, None), 0.5)
    with torch.no_grad():
        ours, theirs = (each(tokens).logits for each in (smoothed, model.module))
    assert not torch.equal(ours, theirs)
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-5


def test_a_setting_divides_inputs_and_multiplies_weights(
    model: LanguageModel, others: Tensor
) -> None:
    made: Any = quantised(model, Setting("mxfp4", "mxfp4", smooth=0.75), others)
    name = "model.layers.1.mlp.down_proj"
    plain: Any = linear_layers(model.module)[name]
    maxima = input_maxima(model.module, others, None)[name]
    factors = (maxima.double() ** 0.75 / plain.weight.abs().amax(0).double() ** 0.25).float()
    by_hand = nn.Linear(96, 64, bias=False)
    by_hand.weight.data = (plain.weight.detach().double() * factors).float()
    x = torch.randn(5, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = convert(by_hand, format="mxfp4")(x / factors)
        assert torch.equal(made.get_submodule(name)(x), expected)
