"""What documents say of modules that are held as they are, and the shapes that loaders expect."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from axs6.files.checkpoints import KINDS
from axs6.files.checkpoints.encode_file import Chosen, encode_checkpoint
from axs6.files.tensors import open_tensors

IGNORED = {
    "compressed-tensors": ("config.json", "ignore"),
    "fp8-blocks": ("config.json", "modules_to_not_convert"),
    "modelopt": ("config.json", "ignore"),
    "quark": ("config.json", "exclude"),
}


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    save_file(
        {
            "a.weight": rng.standard_normal((32, 64)).astype(ml_dtypes.bfloat16),
            "lm_head.weight": rng.standard_normal((32, 64)).astype(np.float32),
            "norm.weight": np.ones(64, np.float32),
        },
        tmp_path / "model.safetensors",
    )
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("kind", IGNORED)
def test_encoded_modules_are_not_ignored(tmp_path, model, kind):
    encode_checkpoint(model, tmp_path / "out", KINDS[kind], Chosen(include=("a.*",)))
    document, key = IGNORED[kind]
    config = json.loads((tmp_path / "out" / document).read_text())["quantization_config"]
    assert config[key] == ["lm_head"]


@pytest.mark.parametrize(
    ("kind", "layout", "shape"),
    [
        ("compressed-tensors", "fp8-tensor", (1,)),
        ("compressed-tensors", "int8-tensor", (1,)),
        ("compressed-tensors", "fp8-channel", (32, 1)),
        ("compressed-tensors", "compressed-tensors-fp8-blocks", (1, 1)),
        ("modelopt", "fp8-tensor", ()),
    ],
)
def test_shapes_of_scales(tmp_path, model, kind, layout, shape):
    out = tmp_path / "out.safetensors"
    encode_checkpoint(model, out, KINDS[kind], Chosen(include=("a.*",), layout=layout))
    with open_tensors(out) as (tensors, _):
        assert {each.name: each.shape for each in tensors}["a.weight_scale"] == shape
