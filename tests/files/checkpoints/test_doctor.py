"""Every finding of the doctor, planted; and checkpoints in which nothing is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_safetensors import content, write
from safetensors.numpy import save_file

from axs6.files.checkpoints import KINDS, Chosen, convert_checkpoint, encode_checkpoint, examine
from axs6.files.checkpoints.doctor import CHECKS
from axs6.files.checkpoints.swizzle import swizzled

Tensors = dict[str, tuple[str, list[int], bytes]]
NAME = "layer.weight"


def weight() -> Any:
    """A weight whose rows and columns have spreads of their own, as those of networks have."""
    rng = np.random.default_rng(0)
    rows, columns = rng.lognormal(0, 0.7, (256, 1)), rng.lognormal(0, 0.7, 128)
    return (0.02 * rows * columns * rng.standard_normal((256, 128))).astype(np.float32)


def checkpoint(tmp_path: Path, kind: str = "modelopt", **options: Any) -> Path:
    save_file({NAME: weight(), "norm.weight": np.ones(8, np.float32)}, tmp_path / "w.safetensors")
    target = tmp_path / f"x{KINDS[kind].suffix}"
    encode_checkpoint(tmp_path / "w.safetensors", target, KINDS[kind], Chosen(**options))
    return target


@pytest.mark.parametrize(
    ("kind", "layout"),
    [(kind.name, layout.name) for kind in KINDS.values() for layout in kind.layouts],
)
def test_nothing_is_found_where_nothing_is_wrong(kind: str, layout: str, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, kind, layout=layout)
    assert list(examine(path)) == []
    assert list(examine(path, tmp_path / "w.safetensors")) == []


ROWS = {
    "zeros": lambda x: np.where(np.arange(256)[:, None] < 200, x, 0),
    "all zero": lambda x: 0 * x,
    "constant": lambda x: np.repeat(x[:, :1], 128, axis=1),
    "some constant": lambda x: np.where(np.arange(256)[:, None] < 5, np.float32(0.01), x),
    "sparse": lambda x: np.where(np.arange(128) % 97 == np.arange(256)[:, None] % 97, x, 0),
    "one value": lambda x: x[:, :1],
    "two values": lambda x: x[:, :2],
    "four values": lambda x: x[:, :4],
    "one row": lambda x: x[:1],
    "uniform": lambda x: np.random.default_rng(0).uniform(-1 / 8, 1 / 8, x.shape).astype("f4"),
}
"""Weights as networks also have them."""


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("modelopt", "modelopt-nvfp4"),
        ("compressed-tensors", "compressed-tensors-mxfp4"),
        ("compressed-tensors", "fp8-tensor"),
        ("compressed-tensors", "fp8-channel"),
        ("compressed-tensors", "int8-channel"),
        ("fp8-blocks", "fp8-blocks"),
    ],
)
def test_nothing_is_found_in_odd_weights(rows: str, kind: str, layout: str, tmp_path: Path) -> None:
    odd = np.ascontiguousarray(ROWS[rows](weight()))
    if odd.shape[1] < 128 and KINDS[kind].named(layout).packed:
        return
    save_file({NAME: odd}, tmp_path / "w.safetensors")
    path = tmp_path / "x.safetensors"
    encode_checkpoint(tmp_path / "w.safetensors", path, KINDS[kind], Chosen(layout=layout))
    assert list(examine(path, tmp_path / "w.safetensors")) == []


@pytest.mark.parametrize(
    ("kind", "layout", "scale"),
    [
        ("modelopt", "fp8-tensor", "_scale"),
        ("fp8-blocks", "fp8-blocks", "_scale_inv"),
        ("modelopt", "modelopt-nvfp4", "_scale_2"),
    ],
)
def test_scales_of_0_over_zeros(kind: str, layout: str, scale: str, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, kind, layout=layout)
    tensors = content(path)
    for name in (NAME, NAME + scale):
        dtype, shape, data = tensors[name]
        tensors[name] = (dtype, shape, bytes(len(data)))
    write(path, tensors)
    assert list(examine(path)) == []
    _bytes(NAME, _set(0x11, 200, 50))(tensors)
    write(path, tensors)
    whats = {each.check: each.what for each in examine(path)}
    assert whats["zero scales"].startswith("1 of ")


def test_saturated_integers(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, "compressed-tensors", layout="int8-channel")
    tensors = content(path)
    _bytes(NAME, lambda x: np.where(x < 128, 127, 129).astype(np.uint8))(tensors)
    write(path, tensors)
    assert [each.check for each in examine(path)] == ["saturated"]


def _bytes(name: str, change: Callable[[Any], Any]) -> Callable[[Tensors], None]:
    """Change the bytes of a tensor, as an array (rows, n), or flat."""

    def planted(tensors: Tensors) -> None:
        dtype, shape, data = tensors[name]
        array = np.frombuffer(data, np.uint8).reshape(shape or 4).copy()
        tensors[name] = (dtype, shape, np.ascontiguousarray(change(array)).tobytes())

    return planted


def _set(value: int, *where: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[where] = value
        return array

    return change


def _float(value: float) -> Callable[[Any], Any]:
    return lambda _: np.float32(value)


def _inverse(array: Any) -> Any:
    return 1 / array.view(np.float32)


def _zero_block(tensors: Tensors) -> None:
    """A block of zeros under the largest scale, which no other block has."""

    def scales(array: Any) -> Any:
        array[array == 0x7E] = 0x7D
        array[5, 1] = 0x7E
        return array

    _bytes(NAME, _set(0, 5, slice(8, 16)))(tensors)
    _bytes(f"{NAME}_scale", scales)(tensors)


PLANTED: list[tuple[str, Callable[[Tensors], None], str]] = [
    ("NaN", _bytes(f"{NAME}_scale", _set(0x7F, 3, 2)), "1 of 2,048 .* NaN, .* row 3, scale 2"),
    ("NaN", _bytes(f"{NAME}_scale_2", _float(np.inf)), "1 of 1 scales are infinite"),
    ("zero scales", _bytes(f"{NAME}_scale", _set(0, 7)), "8 of 2,048 scales are 0, .* row 7, sc"),
    ("zero scales", _bytes(f"{NAME}_scale", _set(0xB0, 1, 1)), "1 of 2,048 scales are negative"),
    ("zero scales", _bytes(f"{NAME}_scale_2", _float(0)), "1 of 1 scales are 0"),
    ("blocks of zeros", _zero_block, "blocks of zeros have larger scales than all others, up to"),
    ("inverted", _bytes(f"{NAME}_scale_2", _inverse), "the scale of the tensor, .*, looks invert"),
    ("spread", _bytes(f"{NAME}_scale_2", _float(1e9)), "values have a root mean square of .*, as"),
    ("swizzled", _bytes(f"{NAME}_scale", swizzled), "scales look swizzled in tiles of 128 x 4"),
    (
        "saturated",
        _bytes(NAME, _set(0x7F, slice(None), slice(8))),
        "12.5 % of blocks have two thirds",
    ),
    ("unused codes", _bytes(NAME, lambda x: x & 0xEE), "no element is 0.5, 1.5, 3, 6"),
    ("unused codes", _bytes(NAME, lambda x: x & 0x99), "the largest element is 0.5, of 6 that"),
]


@pytest.mark.parametrize(("check", "plant", "message"), PLANTED)
def test_what_is_planted_is_found(
    check: str, plant: Callable[[Tensors], None], message: str, tmp_path: Path
) -> None:
    path = checkpoint(tmp_path)
    tensors = content(path)
    plant(tensors)
    write(path, tensors)
    found = [finding for finding in examine(path) if finding.check == check]
    assert [finding.tensor for finding in found] == [NAME]
    with pytest.raises(ValueError, match=message):
        raise ValueError(found[0].what)


def test_every_check_is_planted() -> None:
    assert {check for check, _, _ in PLANTED} == set(CHECKS)


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (_bytes(NAME, lambda x: x << 4 | x >> 4), "the first code of a byte is in the high bits"),
        (_bytes(f"{NAME}_scale", swizzled), "scales are swizzled in tiles of 128 x 4: then it is"),
        (_bytes(f"{NAME}_scale_2", _inverse), "the scale of the tensor is inverted: then it is"),
        (_bytes(f"{NAME}_scale_2", lambda x: x.view(np.float32) * 4), "its values differ: QSNR -"),
    ],
)
def test_what_a_reference_shows(
    plant: Callable[[Tensors], None], message: str, tmp_path: Path
) -> None:
    path = checkpoint(tmp_path)
    tensors = content(path)
    plant(tensors)
    write(path, tensors)
    for reference in ("w.safetensors", "y.safetensors"):
        if reference == "y.safetensors":
            checkpoint(tmp_path).rename(tmp_path / reference)
            write(path, tensors)
        found = [x for x in examine(path, tmp_path / reference) if x.check == "reference"]
        assert [each.tensor for each in found] == [NAME]
        assert message in found[0].what


def test_shapes_and_missing_tensors_are_found(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    tensors = content(path)
    dtype, _, data = tensors[f"{NAME}_scale"]
    write(path, {**tensors, f"{NAME}_scale": (dtype, [256, 7], data[: 256 * 7])})
    (found,) = examine(path)
    assert (found.tensor, found.check) == (f"{NAME}_scale", "tensors")
    assert "needs scales of shape (256, 8)" in found.what
    path = checkpoint(tmp_path, "gpt-oss")
    tensors = content(path)
    del tensors[f"{NAME}_scales"]
    write(path, tensors)
    (found,) = examine(path)
    assert found.what == f"gpt-oss-mxfp4 needs a tensor '{NAME}_scales', which is missing"


@pytest.mark.parametrize(
    ("kind", "layout", "scale"),
    [
        (kind.name, layout.name, part.names[0].format(NAME))
        for kind in KINDS.values()
        if kind.suffix == ".safetensors"
        for layout in kind.layouts
        for part in layout.scales
    ],
)
def test_codes_without_scales_are_found(kind: str, layout: str, scale: str, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, kind, layout=layout)
    tensors = content(path)
    tensors |= {name.replace("layer", "other"): each for name, each in tensors.items()}
    *_, data = tensors.pop(scale)
    write(path, tensors)
    (found,) = examine(path)
    assert found.check == "tensors"
    assert found.tensor.startswith(NAME)
    write(path, {**tensors, scale: ("I8", [len(data)], data)})
    (found,) = examine(path)
    assert (found.tensor, found.check) == (scale, "tensors")
    assert "has no scales of dtype I8" in found.what


@pytest.mark.parametrize(
    ("kind", "change", "tensor", "message"),
    [
        (
            "modelopt",
            {"quant_method": "fp8"},
            NAME,
            "its layout is modelopt-nvfp4, which fp8 does not have",
        ),
        ("modelopt", {"quant_method": "x"}, "config.json", "its quant_method 'x' is not known"),
        ("modelopt", {"ignore": ["lay*"]}, NAME, "'layer' is among those that the configuration"),
        ("modelopt", {"ignore": ["re:l.*er"]}, NAME, "'layer' is among those that the configura"),
        ("modelopt", {"group_size": 32}, NAME, "its scales are of 16 values, and .* says 32"),
        (
            "fp8-blocks",
            {"weight_block_size": [64, 128]},
            NAME,
            "its scales are of 128 x 128 values, and the configuration says 64 x 128",
        ),
    ],
)
def test_what_the_configuration_says_otherwise(
    kind: str, change: dict[str, Any], tensor: str, message: str, tmp_path: Path
) -> None:
    path = checkpoint(tmp_path, kind)
    folder = tmp_path / "folder"
    convert_checkpoint(path, folder, KINDS[kind])
    assert list(examine(folder)) == []
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] |= change
    (folder / "config.json").write_text(json.dumps(config))
    found = {each.tensor: each.what for each in examine(folder)}
    with pytest.raises(ValueError, match=message):
        raise ValueError(found[tensor])
