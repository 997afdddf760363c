"""GPTQ in block formats."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiles import small_tiles
from torch import Tensor

from axs6.golden import decode, encode
from axs6.golden.formats import CATALOG, Selected, block_format
from axs6.studies.language.calibration import hessians
from axs6.studies.language.gptq import DAMPENING, Scales, gptq
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting

FORMATS = ("mxfp4", "nvfp4", "mx6", "axs6", "vsq4", "int4", "uint8", "e2m1_e8m0_t32")


def some(rows: int, columns: int, seed: int) -> Tensor:
    """Values with a wide spread, and channels that depend on each other."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator)
    return x * torch.exp2(torch.randint(-3, 4, (columns,), generator=generator))


@pytest.mark.parametrize("name", [*map(small_tiles, CATALOG), "e2m1_e8m0_t32"])
def test_a_value_is_rounded_as_the_encoder_does_it(name: str) -> None:
    x = np.concatenate([some(6, 64, 1).numpy(), np.zeros((1, 64), np.float32)])
    x[0, :32] *= np.float32(2.0**-130)
    x[1] *= np.float32(2.0**120)
    x[2, 3:40] = 0
    blocks = encode(x, name)
    if isinstance(blocks.format.element, Selected):
        with pytest.raises(ValueError, match="gptq rounds to one element, and scales select"):
            Scales.of(blocks)
        return
    scales = Scales.of(blocks)
    codes = np.stack([scales.codes(x[:, j], j) for j in range(64)], axis=1)
    assert np.array_equal(codes, blocks.codes.reshape(codes.shape))
    values = np.stack([scales.values(codes[:, j], j) for j in range(64)], axis=1)
    assert np.array_equal(values.astype(np.float32), decode(blocks))


def by_definition(weight: Tensor, hessian: Tensor, name: str) -> NDArray[np.float32]:
    """Column by column, each time with the inverse of what is left of the Hessian."""
    fmt = block_format(name)
    damped = hessian.double().numpy()
    damped = damped + DAMPENING * damped.diagonal().mean() * np.eye(len(damped))
    w = weight.double().numpy().copy()
    result, size = np.empty_like(w), fmt.block
    # Scales of channels and the tensor stay those of the whole weight.
    outer = encode(weight.numpy(), name).scales[0].view(np.float32) if fmt.outer else None
    for j in range(w.shape[1]):
        if j % size == 0:
            part = w[:, j : j + size].astype(np.float32)
            scales = Scales.of(encode(part, name, scale=outer))
        codes = scales.codes(w[:, j].astype(np.float32), j % size)
        result[:, j] = scales.values(codes, j % size)
        inverse = np.linalg.inv(damped[j:, j:])
        w[:, j:] -= np.outer((w[:, j] - result[:, j]) / inverse[0, 0], inverse[0])
    return result.astype(np.float32)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "uint8"])
def test_it_is_the_column_by_column_update(name: str) -> None:
    weight, x = some(5, 96, 2), some(150, 96, 3) @ torch.eye(96).roll(1, 0).add(0.5)
    hessian = x.mT @ x
    found = gptq(weight, hessian, block_format(name))
    assert np.array_equal(decode(found), by_definition(weight, hessian, name))


@pytest.mark.parametrize("name", FORMATS)
def test_outputs_have_smaller_errors(name: str) -> None:
    # 70 columns: no format's blocks fill them.
    weight, x = some(16, 70, 4), some(300, 70, 5) @ some(70, 70, 6)
    found = gptq(weight, x.mT @ x, block_format(name))
    errors = [
        float((x @ (torch.from_numpy(decode(each)) - weight).mT).norm())
        for each in (found, encode(weight.numpy(), name))
    ]
    assert errors[0] < 0.8 * errors[1]


def test_inputs_that_tell_nothing_leave_the_nearest() -> None:
    weight = some(4, 64, 7)
    for hessian in (torch.zeros(64, 64), torch.eye(64)):
        found = gptq(weight, hessian, block_format("nvfp4"))
        assert np.array_equal(found.codes, encode(weight.numpy(), "nvfp4").codes)


@pytest.mark.parametrize("activations", ["fp32", "axs6"])
def test_layers_multiply_by_its_blocks(
    model: LanguageModel, others: Tensor, activations: str
) -> None:
    name = "model.layers.1.mlp.down_proj"
    weight = model.module.get_parameter(f"{name}.weight").detach()
    made: Any = quantised(model, Setting("axs6", activations, rounding="gptq"), others)
    hessian = hessians(model.module, others, None)[name]
    blocks = gptq(weight, hessian, block_format("axs6"))
    layer = made.get_submodule(name)
    assert np.array_equal(layer.weight.detach().numpy(), decode(blocks))
    assert not np.array_equal(encode(decode(blocks), "axs6").codes, blocks.codes)
    x = torch.randn(5, 96, generator=torch.Generator().manual_seed(0))
    given = x if activations == "fp32" else torch.from_numpy(decode(encode(x.numpy(), "axs6")))
    with torch.no_grad():
        # Their own codes: those of what they decode to are others.
        expected = given.double() @ torch.from_numpy(decode(blocks, np.float64)).mT
        assert torch.allclose(layer(x).double(), expected, rtol=1e-5, atol=1e-5)


def test_hessians_are_sums_over_tokens(model: LanguageModel, others: Tensor) -> None:
    found = hessians(model.module, others, "lm_head")
    with torch.no_grad():
        inner: Any = model.module.model
        x = inner.layers[0].input_layernorm(inner.embed_tokens(others)).flatten(0, 1).double()
    for part in ("q_proj", "k_proj", "v_proj"):
        hessian = found[f"model.layers.0.self_attn.{part}"].double()
        assert torch.allclose(hessian, x.mT @ x, rtol=1e-4, atol=1e-3)


def test_it_needs_windows(model: LanguageModel) -> None:
    with pytest.raises(ValueError, match="mxfp4, gptq needs calibration windows"):
        quantised(model, Setting("mxfp4", "mxfp4", rounding="gptq"))
