"""What the documents of a checkpoint say of its weights, as each library's loader reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from axs6.files.checkpoints.layouts import WeightLayout
from axs6.golden.formats import Exponent, Float

CONFIG, MODELOPT = "config.json", "hf_quant_config.json"

Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Contents:
    """The weights of a checkpoint that is written.

    Args:
        weights: the module, layout, and whether there is a scale of its activations.
        ignored: modules with a matrix that is held as it is.
    """

    weights: Sequence[tuple[str, WeightLayout, bool]]
    ignored: Sequence[str]

    @property
    def layouts(self) -> list[WeightLayout]:
        """The layouts that weights have, in their order."""
        return list(dict.fromkeys(layout for _, layout, _ in self.weights))


def gpt_oss(contents: Contents) -> Documents:
    """Of MXFP4 weights as transformers reads them."""
    ignored = list(contents.ignored)
    return _in_config({"quant_method": "mxfp4", "modules_to_not_convert": ignored})


def fine_grained_fp8(contents: Contents) -> Documents:
    """Of FP8 weights with scales of tiles, as transformers and vLLM read them."""
    part = contents.layouts[0].scales[0]
    found: dict[str, Any] = {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [part.rows, part.values],
        "modules_to_not_convert": list(contents.ignored),
    }
    if _is_exponent(contents.layouts[0]):
        found["scale_fmt"] = "ue8m0"
    return _in_config(found)


def modelopt(contents: Contents) -> Documents:
    """Of NVFP4 and FP8 weights as TensorRT-LLM and vLLM read them."""
    algorithms = {4: "NVFP4", 8: "FP8"}
    used = [algorithms[layout.element.width] for layout in contents.layouts]
    quantisation: dict[str, Any] = {
        "quant_algo": used[0] if len(used) == 1 else "MIXED_PRECISION",
        "kv_cache_quant_algo": None,
        "exclude_modules": list(contents.ignored),
    }
    if len(used) > 1:
        quantisation["quantized_layers"] = {
            module: _modelopt_layer(layout, algorithms) for module, layout, _ in contents.weights
        }
    elif contents.layouts[0].scales[0].values:
        quantisation["group_size"] = contents.layouts[0].scales[0].values
    producer = {"name": "axs6"}
    described = {**quantisation, "ignore": quantisation["exclude_modules"]}
    del described["exclude_modules"]
    return {
        MODELOPT: {"producer": producer, "quantization": quantisation},
        **_in_config({"quant_method": "modelopt", "producer": producer, **described}),
    }


def _modelopt_layer(layout: WeightLayout, algorithms: dict[int, str]) -> dict[str, Any]:
    size = layout.scales[0].values
    return {
        "quant_algo": algorithms[layout.element.width],
        **({"group_size": size} if size else {}),
    }


def compressed_tensors(contents: Contents) -> Documents:
    """Of weights in groups, as compressed-tensors reads them."""
    groups: dict[tuple[WeightLayout, bool], list[str]] = {}
    for module, layout, has_input in contents.weights:
        groups.setdefault((layout, has_input), []).append(module)
    formats = list(dict.fromkeys(_compressed_format(layout) for layout, _ in groups))
    described = {
        f"group_{number}": {
            "targets": ["Linear"] if len(groups) == 1 else modules,
            "weights": _compressed(layout),
            "input_activations": _compressed_input(layout) if has_input else None,
            "output_activations": None,
            "format": _compressed_format(layout),
        }
        for number, ((layout, has_input), modules) in enumerate(groups.items())
    }
    return _in_config(
        {
            "quant_method": "compressed-tensors",
            "format": formats[0] if len(formats) == 1 else "mixed-precision",
            "quantization_status": "compressed",
            "config_groups": described,
            "ignore": list(contents.ignored),
        }
    )


def _compressed(layout: WeightLayout) -> dict[str, Any]:
    part, inner = layout.scales[0], len(layout.scales) > 1
    found: dict[str, Any] = {
        "num_bits": layout.element.width,
        "type": "float" if isinstance(layout.element, Float) else "int",
        "symmetric": True,
        "dynamic": False,
        "group_size": None,
        "block_structure": None,
    }
    if part.rows > 1:
        found |= {"strategy": "block", "block_structure": [part.rows, part.values]}
    elif part.values:
        strategy = "tensor_group" if inner else "group"
        found |= {"strategy": strategy, "group_size": part.values}
    else:
        found["strategy"] = "channel" if part.rows else "tensor"
    if _is_exponent(layout):
        found["scale_dtype"] = "torch.uint8"
    elif inner:
        found["scale_dtype"] = "torch.float8_e4m3fn"
    return found


def _compressed_input(layout: WeightLayout) -> dict[str, Any]:
    found = _compressed(layout)
    if len(layout.scales) > 1:
        return {**found, "dynamic": "local"}
    return {**found, "strategy": "tensor"}


def _compressed_format(layout: WeightLayout) -> str:
    if not isinstance(layout.element, Float):
        return "int-quantized"
    if len(layout.scales) > 1:
        return "nvfp4-pack-quantized"
    if _is_exponent(layout):
        return "mxfp4-pack-quantized" if layout.packed else "mxfp8-quantized"
    return "float-quantized"


def quark(contents: Contents) -> Documents:
    """Of MX and FP8 weights as Quark and vLLM read them."""
    described = {module: _quark(layout, given) for module, layout, given in contents.weights}
    several = len(contents.layouts) > 1 or len({given for _, _, given in contents.weights}) > 1
    first = next(iter(described.values()))
    return _in_config(
        {
            "quant_method": "quark",
            "quant_mode": "eager_mode",
            "global_quant_config": first,
            "layer_quant_config": described if several else {},
            "layer_type_quant_config": {},
            "exclude": list(contents.ignored),
            "algo_config": None,
            "softmax_quant_spec": None,
            "kv_cache_quant_config": {},
            "export": {
                "kv_cache_group": [],
                "pack_method": "order",
                "weight_format": "real_quantized",
                "weight_merge_groups": None,
            },
        }
    )


def _quark(layout: WeightLayout, has_input: bool) -> dict[str, Any]:
    part, exponent = layout.scales[0], _is_exponent(layout)
    weight: dict[str, Any] = {
        "dtype": "fp4" if layout.packed else "fp8_e4m3",
        "is_dynamic": False,
        "qscheme": "per_group" if part.values else "per_channel" if part.rows else "per_tensor",
        "ch_axis": -1 if part.values else 0 if part.rows else None,
        "group_size": part.values or None,
        "symmetric": None if exponent else True,
        "round_method": "half_even",
        "scale_type": "float",
        "scale_format": "e8m0" if exponent else None,
        "scale_calculation_mode": "floor" if exponent else None,
        "observer_cls": "PerBlockMXObserver" if exponent else "PerTensorMinMaxObserver",
    }
    inputs = {**weight, "qscheme": "per_tensor", "ch_axis": None} if has_input else None
    return {"weight": weight, "input_tensors": inputs, "output_tensors": None, "bias": None}


def _is_exponent(layout: WeightLayout) -> bool:
    return all(isinstance(x.number, Exponent) for x in layout.scales[0].numbers.values())


def _in_config(quantisation: dict[str, Any]) -> Documents:
    return {CONFIG: {"quantization_config": quantisation}}
