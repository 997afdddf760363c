"""Models whose matrix products are the hardware's."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from glob import escape
from types import MethodType
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.parameter import is_lazy

from axs6.torch import functional, layers, recurrent, transposed
from axs6.torch.attention import PROJECTIONS, MultiheadAttention
from axs6.torch.backends import backend_of
from axs6.torch.derive import become, derived, underived
from axs6.torch.intercept import Intercepted, LeftAlone, Scope
from axs6.torch.later import follow
from axs6.torch.options import DEFAULTS, FP32, Names, ProductOptions
from axs6.torch.policy import Choice, LayerRule, Policy, Settings, plan
from axs6.torch.site import Site
from axs6.torch.unconverted import Unconverted, check_unconverted, tell

LAYERS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: layers.Linear,
    nn.Conv1d: layers.Conv1d,
    nn.Conv2d: layers.Conv2d,
    nn.Conv3d: layers.Conv3d,
    nn.ConvTranspose1d: transposed.ConvTranspose1d,
    nn.ConvTranspose2d: transposed.ConvTranspose2d,
    nn.ConvTranspose3d: transposed.ConvTranspose3d,
    nn.Bilinear: layers.Bilinear,
    nn.RNN: recurrent.RNN,
    nn.LSTM: recurrent.LSTM,
    nn.GRU: recurrent.GRU,
    nn.RNNCell: recurrent.RNNCell,
    nn.LSTMCell: recurrent.LSTMCell,
    nn.GRUCell: recurrent.GRUCell,
    nn.MultiheadAttention: MultiheadAttention,
    functional.MatMul: layers.MatMul,
}
"""Replacements of torch's layers."""

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
"""Layers whose weights are reduced along their first axis."""

RECURRENT = (nn.RNNBase, nn.RNNCellBase)
"""Layers with several weights, all of which are multiplied."""


def convert(
    model: nn.Module,
    backend: str = "emulated",
    *,
    policy: Policy | Settings | Choice | None = None,
    exclude: Iterable[str | type[nn.Module]] = (),
    tile: Mapping[str, Any] | None = None,
    unconverted: Unconverted = "warn",
    **names: Unpack[Names],
) -> nn.Module:
    """A copy of a model whose matrix products have the bits of the hardware of block formats.

    Replaced are `nn.Linear`, `nn.Bilinear`, `nn.Conv1d` to `nn.Conv3d`, `nn.ConvTranspose1d` to
    `nn.ConvTranspose3d`, `nn.RNN`, `nn.LSTM`, `nn.GRU` and their cells, `nn.MultiheadAttention` and
    `MatMul`, and in the methods of modules that are not torch's own the functions `@`, `matmul`,
    `mm`, `bmm`, `mv`, `dot`, `vdot`, `vecdot`, `inner`, `tensordot`, `addmm`, `addmv`, `baddbmm`,
    `linear`, `bilinear`, `conv1d` to `conv3d`, `conv_transpose1d` to `conv_transpose3d`,
    `scaled_dot_product_attention`, `grouped_mm`, those of recurrent layers and cells, and an
    `einsum` that is one product, under all names that torch has for them, those of `torch.ops.aten`
    included; in checkpointed functions and threads that a method starts too. Weights
    and activations are encoded in blocks along the reduction, K padded with zeros; each output is
    the FP32 result of `axs6.matmul`, plus the bias in FP32, rounded once to the input's dtype. All
    else, such as normalisation, softmax and embeddings, is as it was.

    Args:
        model: left as it is; it may be converted already. The copy has parameters of its own and
            the same `state_dict` keys. A weight is encoded again when any bit of it changes.
            `freeze` skips this check.
        backend: "emulated", the hardware's bits from compiled kernels or torch's own products where
            they take the formats, else from the NumPy model; "rtl", the hardware simulated, on the
            CPU; or "golden", the NumPy model.
        format: the block format: a name of the catalog, a string such as "e4m3fn_e8m0_t32", or a
            BlockFormat.
        weights, activations: separate formats, instead of `format`. Both operands of products
            without a weight, as in attention, are activations.
        gradients: format of the gradients of results, with which the backward products are the
            hardware's too: each operand is transposed before it is encoded. None for FP32 products
            of the decoded operands.
        gradient_rounding: of these gradients: "nearest", "toward_zero" or "stochastic", whose words
            come from torch's default generator of the device.
        gradient_rotation: block size of a Hadamard rotation, 8, 16, 32, 64 or 128; 0 for none. It
            applies to the products that give the gradients of weights. Before both operands are
            encoded, each of their blocks along the reduction is multiplied by the same random signs
            and by the Hadamard matrix, with the bits of the unit `hadamard`.
        accumulator: how the products become one number, as of `axs6.matmul`.
        block: values of the largest group of a fixed size, in place of those of the formats.
        choice: "max", "four-over-six" or "mse", the choice of the finest scales, in place of that
            of all formats; a format's own is in its string, as "nvfp4_mse".
        policy: other options for some layers: a `Policy`, its plain data, or a function that takes
            the name of a module and the module, and returns a format ("fp32" to leave it alone), a
            mapping of the above, or None to inherit the settings of the parent.
        exclude: names of modules, as in `named_modules` and with the wildcards of `fnmatch`, or
            classes; these modules and everything in them are left alone.
        nonfinite: "error" refuses NaN and infinite operands and names the layer; "saturate" encodes
            NaN as +0 and infinities as the largest code; "propagate" keeps them, in formats with
            NaN.
        tile: parameters of `axs6.sim.tile.Tile`, for "rtl": rows, columns, stages, interleave.
        unconverted: what to do about matrix products that are not replaced, when a module has them
            or, once for each place, when a `forward` computes one: "warn" gives an
            `UnconvertedWarning`, "error" raises it, "ignore" does nothing. Excluded modules are not
            reported.

    Returns:
        The converted copy. Gradients use a straight-through estimator: they are the gradients of
        the FP32 product of the decoded operands.

    Raises:
        TypeError: `model` is not a module, or is a scripted one.
        ValueError: an option is unknown or does not fit the others, a name in `exclude` or a rule
            of the policy is no module's, a lazy module has no parameters yet, or "rtl" has no
            hardware for the formats and the accumulator.
        UnconvertedWarning: with "error", for a module whose products are not replaced.
    """
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        raise TypeError(f"model must be a torch.nn.Module, not scripted, not {_kind(model)}")
    base = {**DEFAULTS, **names}
    backend_of(ProductOptions.of(**base, backend=backend, tile=tile))
    check_unconverted(unconverted)
    chosen = plan(model, base, exclude, policy, tuple(LAYERS), _multiplies)
    options = _options(chosen, backend, tile)
    excluded = {name for name, settings in chosen.items() if settings is None}
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise ValueError(f"{name} has no shape yet: run the model once before converting it")
    converted = copy.deepcopy(model, _computed(model))
    _restore(converted)
    walked = [*_walk(converted)]
    intercepting = any(_is_users(module) for name, module, _ in walked if name not in excluded)
    for name, module, within in walked:
        if name in excluded:
            _leave_alone(module, intercepting)
        elif _is_scripted(module):
            tell(unconverted, f"{name} ({_kind(module)})" if name else _kind(module))
            _leave_alone(module, intercepting)
        else:
            _replace(module, name, options[name], unconverted)
            # What a forward around it runs is replaced, whatever it is.
            if not within and _has_own_forward(module):
                tell(unconverted, f"{name}.forward, assigned to the object,".lstrip("."))
    return converted


def policy_of(model: nn.Module) -> Policy:
    """The policy with which a model was converted, layer by layer.

    Args:
        model: a converted model.

    Returns: A policy that sets the same formats, accumulators and treatment of NaN, and leaves the
    same layers in FP32, in a model of this architecture.
    """
    found: dict[str, dict[str, str]] = {}
    for name, module in model.named_modules():
        kept: Any = [*site_options(module), *scope_options(module)]
        if kept:
            found[name] = kept[0].settings
        elif isinstance(module, tuple(LAYERS)) or _is_users(module):
            found[name] = {"format": FP32}
    converted = [settings for settings in found.values() if "format" not in settings]
    base = converted[0] if converted else {"format": FP32}
    resolved, rules = {"": base}, []
    for name, _ in model.named_modules():
        around = resolved[name.rpartition(".")[0]]
        resolved[name] = found.get(name, around)
        if resolved[name] != around:
            rules.append(LayerRule("name", escape(name), resolved[name]))
    return Policy(base, tuple(rules))


def site_options(module: nn.Module) -> list[ProductOptions]:
    """The options of the places of a layer."""
    sites = [*getattr(module, "axs6_sites", {}).values()]
    return [site.options for site in (sites or [getattr(module, "axs6_site", None)]) if site]


def scope_options(module: nn.Module) -> list[ProductOptions]:
    """The options of the products in a module's own methods."""
    scope: Any = getattr(module, "axs6_scope", None)
    return [scope.options] if scope else []


def _options(
    chosen: Mapping[str, Settings | None], backend: str, tile: Mapping[str, Any] | None
) -> dict[str, ProductOptions]:
    """The options of each module that is not left in FP32.

    Raises:
        TypeError, ValueError: some are refused; the message names the module.
    """
    found = {}
    for name, settings in chosen.items():
        if settings is not None:
            try:
                found[name] = ProductOptions.of(**settings, backend=backend, tile=tile)
                backend_of(found[name])
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name or 'the model'}: {error}") from None
    return found


def _computed(model: nn.Module) -> dict[int, Any]:
    """Copies of the attributes that hooks compute from parameters, which deepcopy refuses.

    Examples are weights of `nn.utils.weight_norm` and of pruned layers; each `forward` computes
    them again.
    """
    return {
        id(x): x.detach().clone()
        for module in model.modules()
        for x in vars(module).values()
        if isinstance(x, Tensor) and not x.is_leaf
    }


def _restore(model: nn.Module) -> None:
    """Give the modules of a converted model their own classes back."""
    originals = {ours: original for original, ours in LAYERS.items()}
    for module in model.modules():
        own = underived(type(module))
        if type(module) is not originals.get(own, own):
            become(module, originals.get(own, own))


def _kind(model: object) -> str:
    return type(model).__name__


def _walk(model: nn.Module) -> Iterator[tuple[str, nn.Module, bool]]:
    """Each module once, and whether a module with a `forward` of the user's contains it."""
    seen: set[int] = set()

    def visit(name: str, module: nn.Module, within: bool) -> Iterator[tuple[str, nn.Module, bool]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        # The modules within a scripted one are scripted too.
        children = [] if _is_scripted(module) else list(module.named_children())
        inside = within or _is_users(module)
        yield name, module, within
        for child_name, child in children:
            yield from visit(f"{name}.{child_name}".lstrip("."), child, inside)

    yield from visit("", model, False)


def _is_scripted(module: nn.Module) -> bool:
    return isinstance(module, torch.jit.ScriptModule)


def _is_users(module: nn.Module) -> bool:
    """Whether a module's `forward` is the user's, not torch's."""
    return not _is_scripted(module) and _is_users_function(type(module).forward)


def _is_users_function(function: Any) -> bool:
    # The compiled text of a graph has no module.
    return not (getattr(function, "__module__", None) or "").startswith("torch.nn.")


def _has_own_forward(module: nn.Module) -> bool:
    """Whether a `forward` of the user's, assigned to the object, hides the `forward` of the
    class."""
    assigned = vars(module).get("forward")
    if assigned is None or not _is_users_function(assigned):
        return False
    kept = [x.__func__ for x in vars(module).values() if isinstance(x, MethodType)]
    return type(module).forward not in kept


def _multiplies(module: nn.Module) -> bool:
    """Whether a module computes products, or may because its `forward` is the user's."""
    return isinstance(module, tuple(LAYERS)) or _is_users(module)


def _leave_alone(module: nn.Module, intercepting: bool) -> None:
    """Prevent a `forward` that calls a module from replacing the module's products."""
    if intercepting and not _is_scripted(module):
        become(module, derived(type(module), LeftAlone, type(module)))


def _replace(module: Any, name: str, options: ProductOptions, unconverted: Unconverted) -> None:
    """Let the hardware compute a module's products, if it has any."""
    own = type(module)
    bases = [own]
    for original, ours in LAYERS.items():
        if isinstance(module, original):
            _give_sites(module, name or own.__name__.lower(), options)
            if own in (original, NonDynamicallyQuantizableLinear):
                become(module, ours)
                return
            bases.append(ours)
    if isinstance(module, nn.TransformerEncoderLayer):
        # Its fast path would read the weights of its layers and never call them; it is not taken
        # where the activation is not known.
        module.activation_relu_or_gelu = 0
    if isinstance(module, nn.TransformerEncoder):
        # Nested tensors are for that fast path alone.
        module.use_nested_tensor = False
    if _is_users(module):
        follow()
        module.axs6_scope = Scope(name, options, unconverted)
        bases.insert(0, Intercepted)
    if len(bases) > 1:
        become(module, derived(own, *bases))


def _give_sites(module: Any, name: str, options: ProductOptions) -> None:
    if isinstance(module, nn.MultiheadAttention):
        _give_attention_sites(module, name, options)
    elif isinstance(module, RECURRENT):
        earlier = getattr(module, "axs6_sites", {})
        # In the order in which they are multiplied.
        weights = [weight for weight in module._parameters if weight.startswith("weight")]
        module.axs6_sites = {
            weight: _site(earlier.get(weight), f"{name}.{weight}", options, True, parameter=weight)
            for weight in weights
        }
    else:
        turned = isinstance(module, TRANSPOSED)
        # Blocks of several groups along the first axis do not lie one after the other.
        packs = "weight" in module._parameters and not (turned and module.groups > 1)
        parameter = "weight" if packs else None
        weighted = not isinstance(module, functional.MatMul)
        earlier = getattr(module, "axs6_site", None)
        module.axs6_site = _site(earlier, name, options, weighted, None, parameter, turned)


def _give_attention_sites(module: Any, name: str, options: ProductOptions) -> None:
    """Places of the three projections, which may share a weight, and of the two products."""
    width = module.embed_dim
    rows: list[tuple[int, int] | None] = [None] * len(PROJECTIONS)
    if module.in_proj_weight is not None:
        rows = [(i * width, (i + 1) * width) for i in range(len(PROJECTIONS))]
    weights = ["in_proj_weight"] * 3
    if module.in_proj_weight is None:
        weights = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
    parts = [
        *zip(PROJECTIONS, rows, weights, strict=True),
        ("scores", None, None),
        ("values", None, None),
    ]
    earlier = getattr(module, "axs6_sites", {})
    module.axs6_sites = {
        part: _site(
            earlier.get(part), f"{name}.{part}", options, part in PROJECTIONS, chosen, parameter
        )
        for part, chosen, parameter in parts
    }


def _site(
    earlier: Site | None,
    name: str,
    options: ProductOptions,
    weighted: bool,
    rows: tuple[int, int] | None = None,
    parameter: str | None = None,
    transposed: bool = False,
) -> Site:
    """A place, with the loaded blocks of the former place, if the model was converted before."""
    packed = earlier.packed if earlier is not None else None
    if packed is not None and packed.format != options.weights:
        packed = None
    return Site(name, options, rows, parameter, packed, weighted, transposed)
