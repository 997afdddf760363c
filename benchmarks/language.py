"""Time and memory of a language model in block formats, beside FP32.

Run with `python benchmarks/language.py`. One thread and its processor time. Every window runs in
FP32 and in all formats before the next one, so that all see the same machine.
"""

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from machine import processor
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel, load, scores
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting, model_path
from axs6.studies.language.texts import documentation, windows

MODEL = "smollm2"
FORMATS = ("axs6", "mxfp4", "mxfp6_e2m3", "mx9", "mxfp8_e4m3")
WINDOWS, WINDOW = 8, 512

FEW = 2
"""Tokens of a text whose first run encodes the weights."""

ROUNDS = 3
"""Conversions of which the fastest counts."""


def main() -> None:
    import transformers

    torch.set_num_threads(1)
    print(
        f"{MODEL}, one thread; torch {torch.__version__}, transformers "
        f"{transformers.__version__}; {processor()}"
    )
    model = loading()
    tokens = windows(model, documentation(), WINDOWS * WINDOW, WINDOW)
    with torch.inference_mode():
        converted = converting(model, tokens[0])
        running({"fp32": model.module, **converted}, tokens)


def loading() -> LanguageModel:
    """Load the model from its GGUF file with an empty cache, and once more."""
    path, function = model_path(MODEL)
    print(f"loading {path.name}, {path.stat().st_size / 1e6:.0f} MB")
    with (
        tempfile.TemporaryDirectory(prefix="axs6-language-") as folder,
        patch.dict(os.environ, AXS6_CACHE=str(Path(folder) / "cache")),
    ):
        for label in ("with an empty cache", "from the cache"):
            seconds, model = timed(lambda: load(path, function))
            print(f"  {label:20} {seconds:6.2f} s")
    return model


def converting(model: LanguageModel, tokens: Tensor) -> dict[str, nn.Module]:
    """Convert the model to each format, until its weights are encoded."""
    print(f"converting, weights encoded, fastest of {ROUNDS}")
    few, converted = tokens[:FEW].unsqueeze(0), {}
    for name in FORMATS:
        found = []
        for _ in range(ROUNDS):
            seconds, module = timed(lambda name=name: quantised(model, Setting.of(name)))
            first, _ = timed(lambda module=module: scores(module, few))
            again, _ = timed(lambda module=module: scores(module, few))
            found.append(seconds + first - again)
        print(f"  {name:20} {min(found):6.2f} s")
        converted[name] = module
    return converted


def running(modules: dict[str, nn.Module], tokens: Tensor) -> None:
    """Run the windows through all modules in turns, and count their memory after that."""
    print(f"scores of {len(tokens)} windows of {tokens.shape[1]} tokens; beside FP32")
    seconds = dict.fromkeys(modules, 0.0)
    for window in tokens:
        for name, module in modules.items():
            seconds[name] += timed(lambda m=module, w=window: scores(m, w.unsqueeze(0)))[0]
    plain = held(modules["fp32"])
    for name, found in seconds.items():
        memory = held(modules[name]) / plain
        times = found / seconds["fp32"]
        print(f"  {name:20} {found:6.2f} s {times:7.2f} x CPU time {memory:7.2f} x memory")


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returns."""
    start = process_time()
    result = function()
    return process_time() - start, result


def held(module: nn.Module) -> int:
    """Bytes of all tensors and arrays that a module leads to, each memory once."""
    sizes: dict[int, int] = {}
    seen: set[int] = set()
    todo: list[Any] = [module]
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen.add(id(each))
        if isinstance(each, Tensor):
            storage = each.untyped_storage()
            _count(sizes, storage.data_ptr(), storage.nbytes())
            todo.append(vars(each))
        elif isinstance(each, np.ndarray):
            while isinstance(each.base, np.ndarray):
                each = each.base
            _count(sizes, each.ctypes.data, each.nbytes)
        else:
            todo += gc.get_referents(each)
    return sum(sizes.values())


def _count(sizes: dict[int, int], address: int, size: int) -> None:
    sizes[address] = max(size, sizes.get(address, 0))


if __name__ == "__main__":
    main()
