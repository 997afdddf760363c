"""Checkpoints of other libraries: they load those that are written, and theirs are read."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from axs6.files.checkpoints import KINDS, convert_checkpoint, open_checkpoint, swizzled
from axs6.files.checkpoints.encode_file import Chosen, encode_checkpoint
from axs6.files.checkpoints.numbers import element_table
from axs6.files.checkpoints.recognise import grid, part_name, stored_shape
from axs6.golden.floats import bf16_bits

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

ARRAYS = {
    "U8": np.uint8,
    "I8": np.int8,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F32": np.float32,
    "BF16": ml_dtypes.bfloat16,
    "F16": np.float16,
}
GONE = "the exception is gone: take it out of this test"
NAME, SHAPE = "model.layer.weight", (256, 512)


def random_tensors(layout, shape=SHAPE, name=NAME):
    """Every finite code of elements, under random scales, as the layout has them."""
    rng = np.random.default_rng(0)
    codes = rng.choice(np.flatnonzero(np.isfinite(element_table(layout.element))), shape)
    if layout.packed:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    if layout.codes.block:
        codes = codes.reshape(*shape[:-1], -1, layout.codes.block)
    found = {part_name(layout.codes.names[0], name): (layout.codes.dtype, codes.astype(np.uint8))}
    for number, part in enumerate(layout.scales):
        dtype, kind = next(iter(part.numbers.items()))
        values = np.exp2(rng.integers(-9, 7, grid(shape, part))).astype(np.float32)
        if dtype == "F8_E4M3":
            scales = rng.integers(1, 127, values.shape, np.uint8)
        else:
            factors = rng.random(values.shape, np.float32) + 1 if dtype == "F32" else 1
            scales, _ = kind.codes(values * np.float32(factors))
        shaped = stored_shape(shape, part)
        if not part.rows and not part.values and number:
            scales = scales[:1]
        found[part_name(part.names[0], name)] = (dtype, scales.reshape(shaped))
    return {name: held.view(ARRAYS[dtype]) for name, (dtype, held) in found.items()}


def values_of(path):
    with open_checkpoint(path) as checkpoint:
        (weight,) = checkpoint.found.weights
        return weight.values(0, weight.rows).reshape(weight.shape)


def bits(tensor):
    """The bits of a torch tensor, and numbers in its dtype nearest to ours."""
    if tensor.dtype == torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy().view(np.uint16)
    assert tensor.dtype == torch.float32
    return tensor.detach().numpy().view(np.uint32)


def assert_same(tensor, ours):
    wanted = bf16_bits(ours) if tensor.dtype == torch.bfloat16 else ours.view(np.uint32)
    assert (bits(tensor) == wanted).all()


def written(tmp_path, kind, layout, shape=SHAPE):
    """A folder that `convert` wrote, with random codes; its tensors in torch, and its values."""
    from safetensors.torch import load_file

    save_file(random_tensors(layout, shape), tmp_path / "source.safetensors")
    convert_checkpoint(tmp_path / "source.safetensors", tmp_path / kind, KINDS[kind], layout=layout)
    config = json.loads((tmp_path / kind / "config.json").read_text())
    tensors = load_file(tmp_path / kind / "model.safetensors")
    return tensors, config["quantization_config"], values_of(tmp_path / kind)


@pytest.fixture
def compressed(peer):
    peer("compressed_tensors", "compressed_tensors.compressors")
    quantisation = peer("compressed_tensors", "compressed_tensors.quantization")
    base = peer("compressed_tensors", "compressed_tensors.compressors.base")

    def scheme_of(config):
        parsed = quantisation.QuantizationConfig.model_validate(config)
        (scheme,) = parsed.config_groups.values()
        return scheme, base.BaseCompressor.get_value_from_registry(parsed.format)

    return scheme_of


COMPRESSED = KINDS["compressed-tensors"].layouts


@pytest.mark.parametrize("layout", COMPRESSED, ids=lambda layout: layout.name)
def test_compressed_tensors_reads(tmp_path, compressed, layout):
    tensors, config, ours = written(tmp_path, "compressed-tensors", layout)
    scheme, compressor = compressed(config)
    local = {name.removeprefix("model.layer."): each for name, each in tensors.items()}
    assert_same(compressor.decompress(local, scheme)["weight"], ours)


@pytest.mark.parametrize("layout", COMPRESSED, ids=lambda layout: layout.name)
def test_compressed_tensors_is_read(tmp_path, compressed, layout):
    """What its compressor writes with the scales of a checkpoint of ours."""
    from safetensors.torch import save_file as save_torch

    tensors, config, _ = written(tmp_path, "compressed-tensors", layout)
    scheme, compressor = compressed(config)
    local = {name.removeprefix("model.layer."): each for name, each in tensors.items()}
    decompressed = compressor.decompress(local, scheme)
    again = compressor.compress(decompressed, scheme)
    named = {f"model.layer.{name}": each.contiguous() for name, each in again.items()}
    save_torch(named, tmp_path / "theirs.safetensors")
    found = values_of(tmp_path / "theirs.safetensors")
    assert_same(compressor.decompress(again, scheme)["weight"], found)


@pytest.mark.parametrize("shape", [(2, 64, 96)])
def test_gpt_oss(tmp_path, peer, shape):
    mxfp4 = peer("transformers", "transformers.integrations.mxfp4")
    configs = peer("transformers", "transformers.utils.quantization_config")
    (layout,) = KINDS["gpt-oss"].layouts
    tensors, config, ours = written(tmp_path, "gpt-oss", layout, shape)
    blocks, scales = tensors[f"{NAME}_blocks"], tensors[f"{NAME}_scales"]
    theirs = mxfp4.convert_moe_packed_tensors(blocks, scales).transpose(1, 2).contiguous()
    assert_same(theirs, ours)
    assert configs.Mxfp4Config(**config).quant_method == "mxfp4"


def test_every_scale_of_gpt_oss(tmp_path, peer):
    """Its loader makes 255 a power of two, or an infinity; it is NaN in OCP's definition."""
    mxfp4 = peer("transformers", "transformers.integrations.mxfp4")
    pairs = np.arange(16, dtype=np.uint8) | np.arange(16, dtype=np.uint8)[::-1] << 4
    blocks, scales = np.tile(pairs, (256, 1, 1)), np.arange(256, dtype=np.uint8).reshape(256, 1)
    save_file({"w_blocks": blocks, "w_scales": scales}, tmp_path / "a.safetensors")
    given = (torch.from_numpy(each[None]) for each in (blocks, scales))
    theirs = bits(mxfp4.convert_moe_packed_tensors(*given).transpose(1, 2).contiguous())[0]
    ours = bf16_bits(values_of(tmp_path / "a.safetensors"))
    assert (theirs[:255] == ours[:255]).all()
    assert (ours[255] == 0x7FC0).all()
    assert (theirs[255] != ours[255]).all(), GONE


@pytest.mark.parametrize("layout", KINDS["fp8-blocks"].layouts, ids=lambda layout: layout.name)
def test_fine_grained_fp8(tmp_path, peer, layout):
    configs = peer("transformers", "transformers.utils.quantization_config")
    fp8 = peer("transformers", "transformers.integrations.finegrained_fp8")
    tensors, config, ours = written(tmp_path, "fp8-blocks", layout)
    parsed = configs.FineGrainedFP8Config(**config)
    assert list(parsed.weight_block_size) == [layout.scales[0].rows, layout.scales[0].values]
    assert parsed.scale_fmt == ("ue8m0" if "scale_fmt" in config else "float")
    scales = tensors[f"{NAME}_scale_inv"]
    if scales.dtype == torch.uint8:
        scales = scales.view(torch.float8_e8m0fnu)
    theirs = fp8.Fp8Dequantize(None)._dequantize_one(tensors[NAME], scales, torch.float32)
    assert_same(theirs, ours)


@pytest.mark.parametrize("layout", KINDS["gguf"].layouts, ids=lambda layout: layout.name)
def test_gguf_reads(tmp_path, peer, layout):
    quants = peer("gguf", "gguf.quants")
    rng = np.random.default_rng(1)
    values = rng.standard_normal((64, 512)) * np.exp2(rng.integers(-20, 20, (64, 1)))
    save_file({NAME: values.astype(np.float32)}, tmp_path / "a.safetensors")
    path = tmp_path / "a.gguf"
    encode_checkpoint(tmp_path / "a.safetensors", path, KINDS["gguf"], Chosen(layout=layout.name))
    tensors = {each.name: each for each in peer("gguf", "gguf").GGUFReader(path).tensors}
    theirs = quants.dequantize(tensors[NAME].data, tensors[NAME].tensor_type)
    with open_checkpoint(path) as checkpoint:
        (weight,) = checkpoint.found.weights
        elements = element_table(layout.element)[weight.read(0, weight.rows)]
        fine, *coarse = (level.factors for level in weight.scales)
    # The package leaves the scale of a tensor out.
    for level in coarse:
        assert level == tensors["model.layer.scale"].data
    ours = elements * fine.reshape(64, -1).repeat(layout.scales[0].values, axis=1)
    assert_same_but_zeros(theirs, ours, layout)
    assert (theirs.view(np.uint32) == ours.view(np.uint32)).all() != layout.packed, GONE


def assert_same_but_zeros(theirs, ours, layout):
    """The package has integers for E2M1, in which code 8 is 0; it is -0 in OCP's definition."""
    assert theirs.dtype == np.float32
    negative = (ours == 0) & np.signbit(ours) & layout.packed
    same = theirs.view(np.uint32) == ours.view(np.uint32)
    assert (same | negative & (theirs.view(np.uint32) == 0)).all()


@pytest.mark.parametrize("layout", KINDS["gguf"].layouts, ids=lambda layout: layout.name)
def test_gguf_is_read(tmp_path, peer, layout):
    """All bytes of scales and codes, as the package decodes them: its codes of its numbers."""
    gguf = peer("gguf", "gguf")
    quants = peer("gguf", "gguf.quants")
    kind = gguf.GGMLQuantizationType(layout.interleaved.kind)
    values = np.random.default_rng(2).standard_normal((64, 512)).astype(np.float32)
    try:
        data = quants.quantize(values, kind)
    except NotImplementedError:
        size = gguf.GGML_QUANT_SIZES[kind]
        data = np.random.default_rng(3).integers(0, 127, (64, 512 // size[0] * size[1]), np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "theirs.gguf", "test")
    writer.add_tensor(NAME, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    theirs = quants.dequantize(data, kind)
    assert_same_but_zeros(theirs, values_of(tmp_path / "theirs.gguf"), layout)


@pytest.mark.parametrize("shape", [(1, 1), (128, 4), (130, 5), (256, 8), (257, 33)])
def test_swizzled_scales(peer, shape):
    torchao = peer("torchao", "torchao.prototype.mx_formats.utils")
    scales = np.random.default_rng(4).integers(0, 256, shape, np.uint8)
    theirs = torchao.to_blocked(torch.from_numpy(scales))
    assert (theirs.numpy() == swizzled(scales)).all()
    padded = [-(-size // whole) * whole for size, whole in zip(shape, (128, 4), strict=True)]
    back = torchao.from_blocked(theirs, *padded).numpy()[: shape[0], : shape[1]]
    assert (back == scales).all()


@pytest.fixture(scope="module")
def llama(peer, tmp_path_factory):
    """The folder of a small language model with random weights."""
    transformers = peer("transformers", "transformers")
    peer("compressed_tensors", "compressed_tensors.compressors")
    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=384,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=128,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "llama"
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


LOADED = [
    (kind, each) for kind in ("compressed-tensors", "fp8-blocks") for each in KINDS[kind].layouts
]


@pytest.mark.parametrize(("kind", "layout"), LOADED, ids=lambda x: getattr(x, "name", x))
def test_transformers_loads_a_model(tmp_path, llama, peer, kind, layout):
    """In bfloat16 it would round scales of float32; narrower scales make bfloat16 weights."""
    transformers = peer("transformers", "transformers")
    chosen = Chosen(include=("*_proj.weight",), layout=layout.name)
    encode_checkpoint(llama, tmp_path / "m", KINDS[kind], chosen)
    dtype = torch.float32 if "F32" in layout.scales[0].numbers else torch.bfloat16
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m", dtype=dtype)
    assert torch.isfinite(model(torch.arange(8)[None]).logits).all()  # weights are decoded by it
    theirs = model.state_dict()
    with open_checkpoint(tmp_path / "m") as checkpoint:
        assert len(checkpoint.found.weights) == 7
        for weight in checkpoint.found.weights:
            assert_same(theirs[weight.name], weight.values(0, weight.rows))


def test_transformers_loads_experts(tmp_path, peer):
    """A model as gpt-oss is; its checkpoints have the matrices of experts transposed."""
    peer("accelerate", "accelerate")
    transformers = peer("transformers", "transformers")
    from safetensors.torch import load_file
    from safetensors.torch import save_file as save_torch

    config = transformers.GptOssConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=128,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["full_attention"],
    )
    torch.manual_seed(0)
    transformers.GptOssForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path / "a")
    path = tmp_path / "a" / "model.safetensors"
    tensors = {
        name: each.transpose(1, 2).contiguous() if name.endswith(("up_proj", "down_proj")) else each
        for name, each in load_file(path).items()
    }
    save_torch(tensors, path, {"format": "pt"})
    kind = KINDS["gpt-oss"]
    chosen = Chosen(include=("*experts.*_proj",))
    encode_checkpoint(tmp_path / "a", tmp_path / "b", kind, chosen)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "b", dtype=torch.bfloat16)
    theirs = model.state_dict()
    with open_checkpoint(tmp_path / "b") as checkpoint:
        assert len(checkpoint.found.weights) == 2
        for weight in checkpoint.found.weights:
            ours = weight.values(0, weight.rows).reshape(weight.shape)
            assert_same(theirs[weight.name].transpose(1, 2).contiguous(), ours)
