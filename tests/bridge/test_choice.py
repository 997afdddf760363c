"""The choice of the scale: kernels, torch's operations and layers have the golden model's bits."""

import numpy as np
import pytest
import torch
from torch import nn

from axs6 import golden
from axs6.golden.formats import block_format
from axs6.torch import Policy, convert, decode, encode, fake_quantise, kernels
from axs6.torch.kernels.layout import description, real_description
from axs6.torch.layers import Linear

FORMATS = (
    *("mxfp4_mse", "mxfp4-even_t8_mse", "msfp12_mse", "sm4d_e8m0_t16_mse", "sm5_e5m0_t8_mse"),
    *("int4_e8m0_t16_mse", "nvfp4_mse", "nvfp4_four-over-six", "vsq4_mse"),
    *("e2m1fn_float16_t16_four-over-six", "e2m1fn_e5m2_t32_float32_t0_mse"),
)
FORMS = (*kernels.FORMS, None)


def values(seed, shape=(7, 150)):
    """Values over many binades, with rows of subnormals, large ones, equal ones and zeros."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)
    x *= 2.0 ** rng.choice([0, 0, -20, 30, -126, -140, 120], (shape[0], 1))
    x[rng.random(shape) < 0.05] = 0
    x[0, 32:64] = 4
    return torch.from_numpy(np.clip(x, -3e38, 3e38).astype(np.float32))


def same(a, b):
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FORMATS)
def test_values_are_the_golden_models(name, form):
    fmt = block_format(name)
    assert description(fmt) or real_description(fmt)
    with kernels.use(form):
        for seed in range(3):
            x = values([seed, *name.encode()])
            for row in x if fmt.outer else x[None]:
                wanted = torch.from_numpy(golden.decode(golden.encode(row.numpy(), name)))
                assert same(fake_quantise(row, name), wanted)
        x[1, 5], x[2, 40] = float("nan"), -float("inf")
        wanted = golden.decode(golden.encode(x.numpy(), name, nonfinite="saturate"))
        assert same(fake_quantise(x, name, nonfinite="saturate"), torch.from_numpy(wanted))


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "vsq4"])
def test_other_roundings_have_the_same_scales(name):
    x = values(3)
    words = torch.randint(0, 1 << 16, x.shape, generator=torch.Generator().manual_seed(0))
    for rounding, given in (("toward_zero", {}), ("stochastic", {"random": words})):
        numbers = {key: x.numpy() for key, x in given.items()}
        blocks = golden.encode(x.numpy(), name, rounding, choice="mse", **numbers)
        found = fake_quantise(x, name, rounding, choice="mse", **given)
        assert same(found, torch.from_numpy(golden.decode(blocks)))
        assert same(decode(encode(x, name, rounding, choice="mse", **given)), found)


def test_wide_merits_are_left_to_the_golden_model():
    x = values(4)
    assert description(block_format("mxfp8_e4m3_mse")) is None
    wanted = golden.decode(golden.encode(x.numpy(), "mxfp8_e4m3_mse"))
    assert same(fake_quantise(x, "mxfp8_e4m3", choice="mse"), torch.from_numpy(wanted))


@pytest.mark.parametrize("form", ["native", None])
@pytest.mark.parametrize(
    ("name", "choice"), [("mxfp4", "mse"), ("nvfp4", "four-over-six"), ("vsq4", "mse")]
)
def test_a_converted_layer_has_the_products_of_chosen_blocks(name, choice, form):
    torch.manual_seed(0)
    layer, x = nn.Linear(70, 9, bias=False), torch.randn(4, 70)
    weight = layer.weight.detach().numpy()
    a, b = (golden.encode(each, name, choice=choice) for each in (x.numpy(), weight))
    with kernels.use(form), torch.no_grad():
        found = convert(layer, format=name, choice=choice)(x)
        assert same(found, torch.from_numpy(golden.matmul(a, b)))
        assert not same(found, convert(layer, format=name)(x))
        mixed = convert(layer, weights=f"{name}_{choice}", activations=name)(x)
    plain = golden.encode(x.numpy(), name)
    assert same(mixed, torch.from_numpy(golden.matmul(plain, b)))


def test_a_policy_has_a_choice():
    model = nn.Sequential(nn.Linear(32, 8), nn.Linear(8, 8))
    rules = {"format": "nvfp4", "choice": "mse", "layers": [{"name": "1", "format": "axs6"}]}
    converted = convert(model, policy=Policy.from_dict(rules))
    assert isinstance(converted[0], Linear)
    assert "nvfp4_mse" in repr(converted[0])
    assert "mse" not in repr(converted[1])  # another format has its own choice
    with pytest.raises(ValueError, match="mse is not for modes"):
        convert(model, choice="mse")
