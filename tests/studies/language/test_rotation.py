"""Rotations of blocks along the reduction."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden import decode, encode
from axs6.golden.hadamard import SIZES
from axs6.studies.language.linear import linear_layers, shared_copy
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting
from axs6.studies.language.rotation import inverse, rotate, unrotated
from axs6.torch import convert, hadamard


@pytest.mark.parametrize("size", SIZES)
def test_the_inverse_undoes_the_transform(size: int) -> None:
    x = torch.randint(-50, 50, (3, 2 * size), generator=torch.Generator().manual_seed(0)).float()
    # Sums of small integers are exact.
    assert torch.equal(inverse(hadamard(x, size), size), x.double())
    assert torch.equal(hadamard(inverse(x, size).float(), size), x)


def test_products_in_fp32_stay(model: LanguageModel, tokens: Tensor) -> None:
    rotated = shared_copy(model.module)
    rotate(rotated, 32)
    with torch.no_grad():
        ours, theirs = (each(tokens).logits for each in (rotated, model.module))
    assert not torch.equal(ours, theirs)
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-5
    # The weights that the model had, tied ones among them, are as they were.
    assert rotated.model.embed_tokens.weight is model.module.model.embed_tokens.weight  # type: ignore[union-attr]


def test_what_does_not_fit_is_left_and_named(model: LanguageModel) -> None:
    copied = shared_copy(model.module)
    names = [f"model.layers.{i}.mlp.down_proj (96)" for i in (0, 1)]
    assert unrotated(copied, 64) == names
    assert unrotated(copied, 32) == []
    rotate(copied, 64, "lm_head")
    theirs = linear_layers(model.module)
    for name, layer in linear_layers(copied).items():
        kept = layer.weight is theirs[name].weight
        assert kept == (name == "lm_head" or f"{name} (96)" in names)


@pytest.mark.parametrize("activations", ["fp32", "bf16", "mxfp8_e4m3"])
def test_a_setting_rotates_before_it_rounds(
    model: LanguageModel, tokens: Tensor, activations: str
) -> None:
    made: Any = quantised(model, Setting("mxfp4", activations, rotate=32))
    layer = made.model.layers[0].mlp.up_proj
    plain: Any = linear_layers(model.module)["model.layers.0.mlp.up_proj"]
    weight = inverse(plain.weight.detach(), 32).float()
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    given = hadamard(x, 32)
    by_hand = nn.Linear(64, 96, bias=False)
    by_hand.weight.data = weight
    with torch.no_grad():
        if activations == "mxfp8_e4m3":
            expected = convert(by_hand, weights="mxfp4", activations="mxfp8_e4m3")(given)
        else:
            values = torch.from_numpy(decode(encode(weight.numpy(), "mxfp4")))
            rounded = given.bfloat16().float() if activations == "bf16" else given
            expected = rounded @ values.mT
        assert torch.equal(layer(x), expected)
        assert torch.equal(layer(input=x), expected)
