"""The linear layers of language models, and changes of their weights and inputs."""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear


def shared_copy(model: nn.Module) -> nn.Module:
    """A copy of a model with the same parameters and buffers, in which each `Conv1D` of
    transformers is an `nn.Linear` with its weight turned."""
    tensors = [*model.parameters(), *model.buffers()]
    copied = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    for name, module in [*copied.named_modules()]:
        if type(module).__name__ == "Conv1D":
            copied.set_submodule(name, _turned(module))
    return copied


def _turned(module: nn.Module) -> nn.Linear:
    weight, bias = module.get_parameter("weight"), module.get_parameter("bias")
    made = nn.Linear(weight.shape[0], weight.shape[1], bias=False, device="meta")
    give_weight(made, weight.detach().mT.contiguous())
    made.bias = bias
    return made.train(module.training)


def linear_layers(model: nn.Module, exclude: str | None = None) -> dict[str, nn.Linear]:
    """The linear layers that are called with their inputs, by name, but for the one of a name.

    `nn.MultiheadAttention` reads the weight of its last layer and does not call it.
    """
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
        and not isinstance(module, NonDynamicallyQuantizableLinear)
        and name != exclude
    }


def give_weight(layer: nn.Linear, values: Tensor) -> None:
    """Give a layer a weight of its own: others that share the one that it had keep that."""
    layer.weight = nn.Parameter(values, requires_grad=False)


def change_input(layer: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
    """Let what a layer is called with be changed first, after what was registered before."""

    def hook(
        _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        if args:
            return (change(args[0]), *args[1:]), kwargs
        return args, {**kwargs, "input": change(kwargs["input"])}

    layer.register_forward_pre_hook(hook, with_kwargs=True)
