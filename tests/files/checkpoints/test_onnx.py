"""ONNX models: written, run by the package's reference evaluator, and read."""

import re
import shutil

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_23
from safetensors.numpy import load_file, save_file

from axs6.files.checkpoints import KINDS, convert_checkpoint, open_checkpoint
from axs6.files.checkpoints.encode_file import Chosen, encode_checkpoint
from axs6.files.checkpoints.layouts import ONNX_LAYOUTS

# onnx 1.22 leaves this class of its own out of its register.
NEW = [type("DequantizeLinear", (DequantizeLinear_23,), {"op_domain": ""})]


def values_of(path):
    """The outputs of a model, as the evaluator computes them."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    names = [each.name for each in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model, new_ops=NEW).run(None, {}), strict=True))


def ours(path):
    with open_checkpoint(path) as checkpoint:
        assert not checkpoint.found.problems
        return {
            each.name: each.values(0, each.rows).reshape(each.shape)
            for each in checkpoint.found.weights
        }


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    assert found
    for name, values in found.items():
        assert values.dtype == np.float32
        assert values.shape == wanted[name].shape
        assert values.tobytes() == wanted[name].tobytes(), name


@pytest.fixture
def floats(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "a.weight": rng.standard_normal((19, 256)).astype(np.float32),
        "experts": rng.standard_normal((2, 5, 256)).astype(np.float32),
        "norm": np.ones(5, np.float32),
    }
    save_file(tensors, tmp_path / "floats.safetensors")
    return tmp_path / "floats.safetensors"


@pytest.mark.parametrize("target", ["m.onnx", "folder"])
@pytest.mark.parametrize("layout", ONNX_LAYOUTS, ids=lambda layout: layout.name)
def test_written(tmp_path, floats, layout, target):
    written = tmp_path / target
    encode_checkpoint(floats, written, KINDS["onnx"], Chosen(layout=layout.name))
    path = written / "model.onnx" if written.is_dir() else written
    assert_same(values_of(path), ours(written))
    with open_checkpoint(written) as checkpoint:
        weight, experts = checkpoint.found.weights
        assert weight.layout is layout
        assert [tensor.name for tensor in checkpoint.found.plain] == ["norm"]
        assert experts.shape == (2, 5, 256)


def test_chain_through_other_kinds_gives_the_same_bytes(tmp_path):
    rng = np.random.default_rng(1)
    tensors = {
        "up_blocks": rng.integers(0, 256, (2, 3, 4, 16), np.uint8),
        "up_scales": rng.integers(100, 140, (2, 3, 4), np.uint8),
    }
    save_file(tensors, tmp_path / "a.safetensors")
    before = tmp_path / "a.safetensors"
    for target, kind in (("b.onnx", "onnx"), ("c", "onnx"), ("d.safetensors", "gpt-oss")):
        convert_checkpoint(before, tmp_path / target, KINDS[kind])
        before = tmp_path / target
    found = load_file(before)
    assert {name: each.tobytes() for name, each in found.items()} == {
        name: each.tobytes() for name, each in tensors.items()
    }
    model = onnx.load(tmp_path / "b.onnx")
    assert model.opset_import[0].version == 24
    assert [each.data_type for each in model.graph.initializer] == [
        TensorProto.FLOAT4E2M1,
        TensorProto.FLOAT8E8M0,
    ]


def test_every_code_of_nvfp4(tmp_path):
    """All 16 elements under all 256 scales; those that are NaN give NaN."""
    codes = np.tile(np.arange(16, dtype=np.uint8), 256).reshape(256, 16)
    scales = np.arange(256, dtype=np.uint8).reshape(256, 1)
    arrays = {
        "codes": (23, (256, 16), codes[:, ::2] | codes[:, 1::2] << 4),
        "scales": (17, (256, 1), scales),
    }
    path = model_of(
        tmp_path,
        arrays | {"outer": (1, (), np.float32(0.0123))},
        [node("scales", "outer", "inner"), node("codes", "inner", "w", axis=1, block_size=16)],
    )
    found, wanted = ours(path)["w"], values_of(path)["w"]
    assert np.isnan(wanted[[0x7F, 0xFF]]).all()
    assert np.isnan(wanted).sum() == 32
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
        (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    ],
)
def test_every_code_of_fp8(tmp_path, kind, dtype):
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    arrays = {"codes": (kind, (4, 64), codes), "scale": (1, (), np.float32(0.0123))}
    path = model_of(tmp_path, arrays, [node("codes", "scale", "w")])
    found = ours(path)["w"]
    wanted = codes.view(dtype).astype(np.float32) * np.float32(0.0123)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.array_equal(
        np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted)
    )
    assert np.array_equal(found, values_of(path)["w"], equal_nan=True)


def node(codes, scale, output, zero="", **attributes):
    inputs = [codes, scale, zero] if zero else [codes, scale]
    return helper.make_node("DequantizeLinear", inputs, [output], **attributes)


def model_of(tmp_path, arrays, nodes):
    """A model of initialisers, each its type, shape and array of bytes or numbers."""
    tensors = [
        TensorProto(name=name, data_type=kind, dims=shape, raw_data=np.asarray(held).tobytes())
        for name, (kind, shape, held) in arrays.items()
    ]
    out = helper.make_tensor_value_info("w", TensorProto.FLOAT, next(iter(arrays.values()))[1])
    graph = helper.make_graph(nodes, "g", [], [out], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=12)
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.mark.parametrize(
    ("shape", "scales", "attributes"),
    [
        ((5, 6), (), {}),
        ((5, 6), (1,), {"axis": 0}),
        ((5, 6), (5,), {"axis": 0}),
        ((5, 6), (6,), {}),
        ((5, 6), (6,), {"axis": -1}),
        ((5, 6), (5, 2), {"axis": 1, "block_size": 4}),
        ((5, 6), (5, 3), {"axis": -1, "block_size": 2}),
        ((5, 6), (2, 6), {"axis": 0, "block_size": 3}),
        ((5, 6), (5, 1), {"axis": 1, "block_size": 6}),
        ((7,), (7,), {"axis": 0}),
        ((7,), (2,), {"axis": 0, "block_size": 4}),
        ((4, 3, 2, 3), (4,), {"axis": 0}),
        ((4, 3, 2, 3), (3,), {"axis": 1}),
        ((4, 3, 2, 3), (2, 3, 2, 3), {"axis": 0, "block_size": 3}),
        ((4, 3, 2, 3), (4, 2, 2, 3), {"axis": 1, "block_size": 2}),
    ],
)
@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.INT4, TensorProto.FLOAT4E2M1])
def test_axes_and_blocks(tmp_path, shape, scales, attributes, kind):
    rng = np.random.default_rng(2)
    size = int(np.prod(shape))
    held = rng.integers(0, 256, size if kind == TensorProto.INT8 else -(-size // 2), np.uint8)
    if kind != TensorProto.INT8 and size % 2:
        held[-1] &= 15
    numbers = rng.standard_normal(scales).astype(np.float32)
    path = model_of(
        tmp_path,
        {"x": (kind, shape, held), "s": (1, scales, numbers)},
        [node("x", "s", "w", **attributes)],
    )
    assert_same(ours(path), values_of(path))


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.FLOAT4E2M1, TensorProto.INT8])
def test_numbers_outside_of_raw_data(tmp_path, kind):
    held = helper.make_tensor("x", kind, [2, 4], [1, -2, 3, -4, 0, 1, 2, 3])
    assert not held.raw_data
    constant = helper.make_tensor("", TensorProto.FLOAT, [], [0.5])
    out = helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 4])
    nodes = [helper.make_node("Constant", [], ["s"], value=constant), node("x", "s", "w")]
    graph = helper.make_graph(nodes, "g", [], [out], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=12)
    onnx.save(model, tmp_path / "m.onnx")
    assert_same(ours(tmp_path / "m.onnx"), values_of(tmp_path / "m.onnx"))
    assert ours(tmp_path / "m.onnx")["w"][0].tolist() == [0.5, -1, 1.5, -2]


X = np.arange(8, dtype=np.uint8)
SCALE = (1, (), np.float32(2))
REFUSED = {
    "a zero point other than 0": (
        {"x": (3, (2, 4), X), "s": SCALE, "z": (3, (), np.int8(1))}, [node("x", "s", "w", "z")],
    ),
    "DequantizeLinear of U8": ({"x": (2, (2, 4), X), "s": SCALE}, [node("x", "s", "w")]),
    "a number, which is no weight": ({"x": (3, (), X[:1]), "s": SCALE}, [node("x", "s", "w")]),
    "scales of shape (3,)": (
        {"x": (3, (2, 4), X), "s": (1, (3,), np.ones(3, np.float32))}, [node("x", "s", "w")],
    ),
    "axis 2": (
        {"x": (3, (2, 4), X), "s": (1, (2,), np.ones(2, np.float32))},
        [node("x", "s", "w", axis=2)],
    ),
    "scales that are dequantised must be FLOAT": (
        {"x": (3, (2, 4), X), "s": (17, (), X[:1]), "t": SCALE},
        [node("s", "t", "u", output_dtype=TensorProto.FLOAT16), node("x", "u", "w")],
    ),
    "its scales are not constant": ({"x": (3, (2, 4), X)}, [node("x", "s", "w")]),
    "scales of F8_E4M3": ({"x": (3, (2, 4), X), "s": (17, (), X[:1])}, [node("x", "s", "w")]),
    "has type UINT4": ({"x": (21, (2, 4), X[:4]), "s": SCALE}, [node("x", "s", "w")]),
    "must have 8 bytes, not 7": ({"x": (3, (2, 4), X[:7]), "s": SCALE}, [node("x", "s", "w")]),
    "no weight": ({"x": (3, (2, 4), X)}, []),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_refused(tmp_path, said):
    path = model_of(tmp_path, *REFUSED[said])
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        convert_checkpoint(path, tmp_path / "t.safetensors", KINDS["compressed-tensors"])
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "t.safetensors").exists()


def test_a_zero_point_of_0_and_a_bias(tmp_path):
    path = model_of(
        tmp_path,
        {
            "x": (3, (2, 4), X), "s": SCALE, "z": (3, (), np.int8(0)),
            "bias": (6, (2,), np.int32([1, 2])),
        },
        [node("x", "s", "w", "z"), node("bias", "s", "b")],
    )  # fmt: skip
    assert_same(ours(path), values_of(path))
    with open_checkpoint(path) as checkpoint:
        assert [each.name for each in checkpoint.found.plain] == ["bias"]


@pytest.fixture
def folder(tmp_path, floats):
    encode_checkpoint(floats, tmp_path / "folder", KINDS["onnx"])
    return tmp_path / "folder"


def test_large_tensors_are_beside_the_model(tmp_path, folder):
    (folder / "tokenizer.json").write_text("{}")
    assert (folder / "model.onnx").stat().st_size < 3000
    assert (folder / "model.onnx.data").stat().st_size > 4096
    convert_checkpoint(folder, tmp_path / "ct", KINDS["compressed-tensors"])
    names = sorted(each.name for each in (tmp_path / "ct").iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json"]


@pytest.mark.parametrize("said", ["no file in its folder", "must have", "whole ONNX model"])
def test_damaged(tmp_path, folder, said):
    path = folder / "model.onnx"
    if said == "must have":
        (folder / "model.onnx.data").write_bytes(b"short")
    elif said == "whole ONNX model":
        path.write_bytes(path.read_bytes()[:-10])
    else:
        shutil.move(folder / "model.onnx.data", tmp_path / "out")
        (folder / "model.onnx.data").symlink_to(tmp_path / "out")
    with pytest.raises(ValueError, match=said), open_checkpoint(folder):
        pass


@pytest.mark.parametrize("name", [b"experts_scale", b"experts"])
def test_names_that_are_no_text(tmp_path, folder, name):
    path = folder / "model.onnx"
    path.write_bytes(path.read_bytes().replace(name, name[:-1] + b"\xff"))
    with pytest.raises(ValueError, match="is no text"), open_checkpoint(folder):
        pass


def test_a_wrong_scale_is_told(tmp_path, floats):
    encode_checkpoint(floats, tmp_path / "m.onnx", KINDS["onnx"])
    wanted = ours(tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    scales = next(x for x in model.graph.initializer if x.name == "a.weight_scale")
    scales.raw_data = bytes([scales.raw_data[0] ^ 1]) + scales.raw_data[1:]
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(AssertionError, match=r"a\.weight"):
        assert_same(values_of(tmp_path / "m.onnx"), wanted)


def test_names_that_onnx_cannot_have_twice(tmp_path):
    tensors = {
        "w": np.zeros((2, 16), np.uint8),
        "w_scale": np.zeros((2, 2), np.uint8),
        "w_scale_2": np.array(1, np.float32),
    }
    tensors["w_scale"] = tensors["w_scale"].view(ml_dtypes.float8_e4m3fn)
    tensors["w_scale_dequantized"] = np.zeros(1, np.float32)
    save_file(tensors, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match=r"^ONNX has no model of these tensors: .+$"):
        convert_checkpoint(tmp_path / "a.safetensors", tmp_path / "m.onnx", KINDS["onnx"])
    assert not (tmp_path / "m.onnx").exists()


def test_numpy_helper_reads_the_codes(tmp_path, floats):
    encode_checkpoint(floats, tmp_path / "m.onnx", KINDS["onnx"], Chosen(layout="onnx-mxfp4"))
    (codes, *_) = onnx.load(tmp_path / "m.onnx").graph.initializer
    with open_checkpoint(tmp_path / "m.onnx") as checkpoint:
        (weight, _) = checkpoint.found.weights
        assert (numpy_helper.to_array(codes).view(np.uint8) == weight.read(0, weight.rows)).all()


def test_commands(tmp_path, floats, main):
    done = main("encode", floats.name, "m.onnx", "--as", "onnx", "--format", "int4_float16_t32")
    assert done.returncode == 0, done.stderr
    assert "onnx-int4-blocks" in main("info", "m.onnx").stdout
    assert main("decode", "m.onnx", "d.safetensors").returncode == 0
    assert load_file(tmp_path / "d.safetensors")["a.weight"].shape == (19, 256)
    done = main("info", "missing.onnx")
    assert (done.returncode, "cannot read missing.onnx" in done.stderr) == (2, True)


def of_matrices(path, *axes):
    """NVFP4 weights of matrices with an outer scale each, as ModelOpt has them."""
    rng = np.random.default_rng(3)
    scales = rng.integers(1, 120, (*axes, 4, 2), np.uint8).view(ml_dtypes.float8_e4m3fn)
    tensors = {
        "w": rng.integers(0, 256, (*axes, 4, 16), np.uint8),
        "w_scale": scales,
        "w_scale_2": rng.random(axes, np.float32),
    }
    save_file(tensors, path)
    return path


def test_scales_of_matrices(tmp_path):
    source = of_matrices(tmp_path / "a.safetensors", 3)
    convert_checkpoint(source, tmp_path / "m.onnx", KINDS["onnx"])
    assert_same(values_of(tmp_path / "m.onnx"), ours(source))
    assert_same(ours(tmp_path / "m.onnx"), ours(source))


def test_scales_of_matrices_along_two_axes(tmp_path):
    source = of_matrices(tmp_path / "a.safetensors", 2, 3)
    with pytest.raises(ValueError, match="'w_scale': ONNX has no scales of matrices"):
        convert_checkpoint(source, tmp_path / "m.onnx", KINDS["onnx"])
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=str)
def test_scales_keep_their_dtype(tmp_path, dtype):
    """Values are in float32 under scales of fewer bits too."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 127, (6, 64), np.uint8).view(ml_dtypes.float8_e4m3fn)
    scales = rng.random((6, 1), np.float32).astype(dtype)
    save_file({"l.weight": codes, "l.weight_scale": scales}, tmp_path / "a.safetensors")
    convert_checkpoint(tmp_path / "a.safetensors", tmp_path / "m.onnx", KINDS["onnx"])
    assert_same(values_of(tmp_path / "m.onnx"), ours(tmp_path / "a.safetensors"))
    convert_checkpoint(tmp_path / "m.onnx", tmp_path / "b.safetensors", KINDS["quark"])
    assert_same(ours(tmp_path / "b.safetensors"), ours(tmp_path / "a.safetensors"))


def test_blocks_of_gguf(tmp_path, floats):
    encode_checkpoint(floats, tmp_path / "a.gguf", KINDS["gguf"], Chosen(layout="gguf-q8-0"))
    convert_checkpoint(tmp_path / "a.gguf", tmp_path / "m.onnx", KINDS["onnx"])
    assert_same(values_of(tmp_path / "m.onnx"), ours(tmp_path / "a.gguf"))


def test_tiles_become_blocks_of_rows(tmp_path):
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 127, (200, 300), np.uint8).view(ml_dtypes.float8_e4m3fn)
    scales = rng.random((2, 3), np.float32)
    source = tmp_path / "a.safetensors"
    save_file({"l.weight": codes, "l.weight_scale_inv": scales}, source)
    convert_checkpoint(source, tmp_path / "m.onnx", KINDS["onnx"])
    assert_same(values_of(tmp_path / "m.onnx"), ours(source))


def test_numbers_of_a_model_are_encoded(tmp_path):
    weight = np.random.default_rng(6).standard_normal((8, 32)).astype(np.float32)
    path = model_of(
        tmp_path,
        {"x": (3, (2, 4), X), "s": SCALE, "m": (1, (8, 32), weight)},
        [node("x", "s", "w")],
    )
    encode_checkpoint(path, tmp_path / "b.safetensors", KINDS["modelopt"], Chosen())
    assert ours(tmp_path / "b.safetensors")["m"].shape == (8, 32)
