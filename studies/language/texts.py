"""Texts for evaluating language models."""

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from axs6.studies.language.models import LanguageModel, Tokens


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
        tokens: maximum number of tokens.
        size: of a window.
        skip: how many to leave out first.

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
    _check_tokens(model, found)
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


def _check_tokens(model: LanguageModel, tokens: Sequence[int]) -> None:
    """Raise ValueError for tokens that a model does not know."""
    if model.vocabulary is not None and max(tokens) >= model.vocabulary:
        raise ValueError(
            f"the tokenizer gives token {max(tokens):,}, and the model knows {model.vocabulary:,}"
        )


WORDS = range(6, 65)
"""Number of words of a sentence."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, in its order, each once.

    A sentence begins with a capital letter at the beginning of a paragraph or after another one,
    ends with a full stop, a question mark or an exclamation mark, and has 6 to 64 words. Lines of
    a paragraph are joined.
    """
    found: dict[str, None] = {}
    for paragraph in re.split(r"\n\s*\n", text):
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(paragraph.split())):
            if part[:1].isupper() and part[-1] in ".!?" and len(part.split()) in WORDS:
                found[part] = None
    return list(found)


def groups(model: LanguageModel, text: str, count: int, size: int) -> list[Tokens]:
    """The tokens of the first sentences of a text, in consecutive groups.

    Args:
        count: maximum number of sentences.
        size: of a group.

    Returns:
        For each group the tokens of each sentence; an incomplete last group is dropped.

    Raises:
        ValueError: the text has not even one group, a sentence has more tokens than the model
            takes, or the model does not know a token.
    """
    found = sentences(text)[:count]
    if len(found) < size:
        raise ValueError(f"the text must have a group of {size:,} sentences, not {len(found):,}")
    each = [tuple(model.tokenise(sentence)) for sentence in found[: len(found) // size * size]]
    for number, tokens in enumerate(each):
        if model.context is not None and len(tokens) > model.context:
            raise ValueError(
                f"sentence {number:,} has {len(tokens):,} tokens, and the model takes "
                f"{model.context:,}: {found[number][:40]}..."
            )
        _check_tokens(model, tokens)
    return [tuple(each[start : start + size]) for start in range(0, len(each), size)]
