"""Backward products with rounded and rotated gradients, held against the golden model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import axs6
from axs6.files.container import open_container
from axs6.golden.hadamard import hadamard
from axs6.golden.rounding import RANDOM_BITS
from axs6.torch import Policy, convert, load_packed, packed, save_packed
from axs6.torch.convert import policy_of
from axs6.torch.functional import MatMul
from axs6.torch.packed import METADATA

ROWS, INPUTS, OUTPUTS = 21, 40, 6


def words(rows: int, columns: int) -> np.ndarray[Any, Any]:
    """The next words of torch's generator for one matrix."""
    return torch.randint(1 << RANDOM_BITS, (1, rows, columns)).numpy()[0]


def stochastic(grad: Tensor, fmt: str) -> Any:
    """A gradient in blocks, rounded by the next words."""
    random = words(*grad.shape)
    return axs6.encode(grad.numpy(), fmt, rounding="stochastic", random=random)


def rotated(x: Tensor, signs: Tensor, size: int) -> Tensor:
    """Rows padded with zeros, with signs, and rotated by the golden model."""
    missing = -x.shape[1] % size
    padded = nn.functional.pad(x, (0, missing)) * signs.repeat((x.shape[1] + missing) // size)
    return torch.from_numpy(hadamard(padded.contiguous().numpy(), size))


def gradients(seed: int, x: Tensor, grad: Tensor, layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Gradients of the input and the weight, with words and signs that begin at a seed."""
    torch.manual_seed(seed)
    inputs = x.clone().requires_grad_()
    (weight,) = layer.parameters()
    weight.grad = None
    layer(inputs).backward(grad)
    assert inputs.grad is not None
    assert weight.grad is not None
    return inputs.grad, weight.grad


@pytest.mark.parametrize("backend", ["emulated", "golden"])
@pytest.mark.parametrize("fmt", ["mxfp4", "nvfp4", "axs6"])
def test_gradients_are_rounded_by_words_of_torchs_generator(fmt: str, backend: str) -> None:
    options = {"gradients": fmt, "gradient_rounding": "stochastic"}
    layer = convert(nn.Linear(INPUTS, OUTPUTS, bias=False), backend, format=fmt, **options)
    x, grad = torch.randn(ROWS, INPUTS), torch.randn(ROWS, OUTPUTS)
    found = gradients(3, x, grad, layer)
    weight = layer.get_parameter("weight").detach()
    torch.manual_seed(3)
    left = axs6.matmul(stochastic(grad, fmt), axs6.encode(weight.mT.contiguous().numpy(), fmt))
    right = axs6.matmul(
        stochastic(grad.mT.contiguous(), fmt), axs6.encode(x.mT.contiguous().numpy(), fmt)
    )
    assert np.array_equal(found[0].numpy(), left)
    assert np.array_equal(found[1].numpy(), right)
    assert not torch.equal(found[1], gradients(4, x, grad, layer)[1])


@pytest.mark.parametrize("size", [8, 16, 32])
def test_operands_of_a_weights_gradient_are_rotated(size: int) -> None:
    """Blocks of 21 values are padded to whole ones; 8 and 32 enlarge the product by 2."""
    layer = convert(
        nn.Linear(INPUTS, OUTPUTS, bias=False),
        format="mxfp4",
        gradients="mxfp8_e5m2",
        gradient_rotation=size,
    )
    x, grad = torch.randn(ROWS, INPUTS), torch.randn(ROWS, OUTPUTS)
    found = gradients(3, x, grad, layer)
    torch.manual_seed(3)
    signs = 1 - 2 * torch.randint(2, (size,))
    left, right = (rotated(each.mT.contiguous(), signs, size) for each in (grad, x))
    product = axs6.matmul(
        axs6.encode(left.numpy(), "mxfp8_e5m2"), axs6.encode(right.numpy(), "mxfp4")
    )
    factor = np.float32(1 if size == 16 else 0.5)
    assert np.array_equal(found[1].numpy(), product * factor)
    plain = convert(layer, format="mxfp4", gradients="mxfp8_e5m2")
    assert torch.equal(found[0], gradients(3, x, grad, plain)[0]), "inputs' are not rotated"
    exact = grad.mT @ x
    assert (found[1] - exact).norm() < 0.5 * exact.norm()


def test_products_without_a_weight_are_not_rotated() -> None:
    a, b = torch.randn(5, 16), torch.randn(16, 7)
    found = []
    for size in (0, 16):
        torch.manual_seed(0)
        model = convert(MatMul(), gradients="axs6", gradient_rotation=size)
        b.grad = None
        model(a, b.requires_grad_()).sum().backward()
        found.append(b.grad)
    assert torch.equal(*found)


def test_a_step_of_a_compiled_model_has_the_same_gradients() -> None:
    options: Any = {"gradient_rounding": "stochastic", "gradient_rotation": 16}
    layer = convert(nn.Linear(32, 4, bias=False), format="mxfp4", gradients="mxfp4", **options)
    x, grad = torch.randn(16, 32), torch.randn(16, 4)
    expected = gradients(1, x, grad, layer)
    compiled: Any = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, gradients(1, x, grad, compiled), expected))


def test_a_policy_sets_them() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    last = {"name": "1", "gradient_rounding": "nearest", "gradient_rotation": 0}
    entries = {
        "format": "mx9",
        "gradients": "mx9",
        "gradient_rounding": "stochastic",
        "gradient_rotation": 16,
    }
    policy = Policy.from_dict({**entries, "layers": [last]})
    assert Policy.from_dict(policy.to_dict()) == policy
    converted = convert(model, policy=policy)
    for each in (converted, convert(model, policy=policy_of(converted))):
        assert str(each).count("gradient_rounding=stochastic, gradient_rotation=16") == 1
        assert str(each).count("gradients=mx9") == 2


def test_files_of_models_converted_before_there_were_these_options_are_loaded(
    tmp_path: Path,
) -> None:
    model, path = convert(nn.Linear(32, 2)), tmp_path / "x.safetensors"
    save_packed(model, path)
    with open_container(path) as (_, _, metadata):
        held = json.loads(metadata[METADATA])
    old = {name: x for name, x in held.items() if not name.startswith("gradient_r")}
    assert len(old) == len(held) - 2
    assert packed._policy(path, {METADATA: json.dumps(old)}) == policy_of(model)
    load_packed(convert(nn.Linear(32, 2)), path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient_rounding": "stochastic"}, "gradient_rounding needs gradients in a block"),
        ({"gradient_rotation": 16}, "gradient_rotation needs gradients in a block format, not fp"),
        (
            {"gradients": "axs6", "gradient_rotation": 12},
            "gradient_rotation must be one of 8, 16, 32, 64, 128, not 12",
        ),
        ({"gradients": "axs6", "gradient_rounding": "up"}, "rounding must be one of"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(nn.Linear(8, 8), **options)
