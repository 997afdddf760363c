"""Language models for studies."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from axs6.studies.language.gguf import folder_of
from axs6.studies.user import blamed, returned

Tokens = tuple[tuple[int, ...], ...]
"""Tokens of several texts."""


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model.

    Args:
        module: called with tokens, int64 (1, T), it returns scores (1, T, tokens) or an object with
            them as `logits`; in float32 and evaluation mode.
        tokenise: returns the tokens of a text.
        digest: of everything that decides its scores.
        context: maximum number of tokens; None if unknown.
        vocabulary: number of tokens that it scores; None if unknown.
    """

    module: nn.Module
    tokenise: Callable[[str], list[int]]
    digest: str
    context: int | None = None
    vocabulary: int | None = None

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(each.numel() for each in self.module.parameters())


def load(path: Path, function: str | None = None) -> LanguageModel:
    """Load a model in float32.

    Args:
        path: a folder of Hugging Face files, a GGUF file, or a Python file.
        function: of the Python file, which returns (model, tokeniser): a causal language model
            and a function from a text to tokens, or a tokeniser of transformers.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no causal language model, or its tokeniser does not fit it.
    """
    return load_as("AutoModelForCausalLM", "causal language model", path, function)


def load_as(kind: str, what: str, path: Path, function: str | None) -> LanguageModel:
    """Load a model of a kind in float32.

    Args:
        kind: class of `transformers` that reads it.
        what: the kind, for errors.
        path, function: as of `load`.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no such model, a weight of it is missing, or its tokeniser does not
            fit it.
    """
    if function is not None:
        return _of_function(path, function)
    folder = path if path.is_dir() else folder_of(path)
    import transformers

    with _offline(path, what):
        tokeniser = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        module, report = getattr(transformers, kind).from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
        if getattr(module, "pooler", None) is not None:
            module.pooler = None  # a layer for other tasks, which some files lack
        missing = sorted(x for x in report["missing_keys"] if not x.startswith("pooler."))
        if missing:
            raise ValueError(f"{missing[0]} is missing in its files, of {len(missing):,} weights")
    return _model(module, tokeniser, str(path))


def _of_function(path: Path, function: str) -> LanguageModel:
    given = returned(path, function)
    with blamed(path):
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(f"{function} must return (model, tokeniser)")
        return _model(*given, f"{path}:{function}")


def _model(module: Any, tokeniser: Any, name: str) -> LanguageModel:
    if not isinstance(module, nn.Module) or not callable(tokeniser):
        raise TypeError(f"{name} must be a torch.nn.Module and a tokeniser")
    module = module.float().eval()
    config = getattr(module, "config", None)
    vocabulary = getattr(config, "vocab_size", None)
    size = getattr(tokeniser, "vocab_size", 0)
    if vocabulary is not None and size > vocabulary:
        raise ValueError(
            f"{name}: the tokenizer has {size:,} tokens and the model {vocabulary:,}: "
            "it is another model's"
        )

    def tokenise(text: str) -> list[int]:
        found = tokeniser(text)
        tokens = getattr(found, "input_ids", found)
        return [int(token) for token in tokens]

    return LanguageModel(
        module,
        tokenise,
        _digest(module),
        getattr(config, "max_position_embeddings", None),
        vocabulary,
    )


_ELSEWHERE = {"_name_or_path", "transformers_version"}
"""Entries of a configuration that do not decide a model's scores."""


def _digest(module: nn.Module) -> str:
    """Digest of the classes, the configuration and the tensors of a model, wherever it lies."""
    digest = hashlib.sha256(f"{type(module)}".encode())
    config: Any = getattr(module, "config", None)
    if hasattr(config, "to_dict"):
        said = {k: x for k, x in config.to_dict().items() if k not in _ELSEWHERE}
        digest.update(json.dumps(said, sort_keys=True, default=str).encode())
    for name, tensor in module.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


@contextmanager
def _offline(path: Path, what: str) -> Iterator[None]:
    """A context that hides progress of transformers, and makes its errors one line with a path."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except (ValueError, KeyError, TypeError, OSError, RuntimeError, ImportError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"{path} must be a {what}: {first}") from error
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def scores(module: nn.Module, tokens: Tensor, **options: Any) -> Tensor:
    """Scores (1, T, tokens) of a model for tokens (1, T)."""
    found: Any = module(tokens, **options)
    values: Tensor = getattr(found, "logits", found)
    return values
