"""Texts for evaluating language models."""

from pathlib import Path

import torch
from torch import Tensor

from axs6.studies.language.models import LanguageModel


def documentation() -> str:
    """The language documentation that ships with Python, `pydoc_data.topics`. It depends on the
    version of Python.
    """
    from pydoc_data.topics import topics

    return "".join(body for _, body in sorted(topics.items()))


def read_text(path: Path | None) -> str:
    """A text in UTF-8, or the documentation.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not in UTF-8.
    """
    if path is None:
        return documentation()
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be a text in UTF-8: {error}") from None


def windows(model: LanguageModel, text: str, tokens: int, size: int, skip: int = 0) -> Tensor:
    """The first tokens of a text in consecutive windows.

    Args:
        tokens: maximum number of tokens. size: of a window. skip: how many to leave out first.

    Returns:
        int64 of shape (windows, size); an incomplete last window is dropped.

    Raises:
        ValueError: the text has not even one window, the model takes no window of this size, or
            it does not know a token.
    """
    if model.context is not None and size > model.context:
        raise ValueError(f"window must be {model.context:,} tokens at most, not {size:,}")
    found = _first_tokens(model, text, skip + tokens)[skip:]
    if len(found) < size:
        where = f" after its first {skip:,}" if skip else ""
        raise ValueError(
            f"the text must have a window of {size:,} tokens{where}, not {len(found):,}"
        )
    if model.vocabulary is not None and max(found) >= model.vocabulary:
        raise ValueError(
            f"the tokenizer gives token {max(found):,}, and the model knows {model.vocabulary:,}"
        )
    whole = len(found) // size * size
    return torch.tensor(found[:whole]).reshape(-1, size)


SPARE = 64
"""Number of tokens at the end of a part of a text that may differ in the whole text."""


def _first_tokens(model: LanguageModel, text: str, tokens: int) -> list[int]:
    """The first tokens of a text; reads only as much text as needed."""
    size = 8 * tokens
    while True:
        found = model.tokenise(text[:size])
        if size >= len(text) or len(found) >= tokens + SPARE:
            return found[:tokens]
        size *= 2
