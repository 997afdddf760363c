"""Sentence encoders for studies."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel, load_as

MEAN, FIRST = "mean_tokens", "cls_token"


@dataclass(frozen=True, eq=False)
class SentenceEncoder(LanguageModel):
    """A sentence encoder.

    Its module is called with the tokens of one sentence, int64 (1, T), and returns the sentence's
    embedding, (1, D), or an object with vectors of its tokens, (1, T, D), as `last_hidden_state`.

    Args:
        pooling: what makes an embedding of these: "mean_tokens", or "cls_token" for the first one.
    """

    pooling: str = MEAN

    def embedding(self, module: nn.Module, tokens: tuple[int, ...]) -> Tensor:
        """The embedding of a sentence, (D,), of length 1 in float64.

        Args:
            module: the model, or a copy of it in other formats.
            tokens: of the sentence.

        Raises:
            ValueError: it is NaN or 0, or the module returns something else.
        """
        found = module(torch.tensor([tokens]))
        vectors = getattr(found, "last_hidden_state", found)
        if not isinstance(vectors, Tensor) or vectors.ndim not in (2, 3) or len(vectors) != 1:
            raise ValueError("a sentence encoder must return (1, D) or a last_hidden_state")
        if vectors.ndim == 3:
            vectors = vectors.mean(1) if self.pooling == MEAN else vectors[:, 0]
        values = vectors[0].double()
        length = values.norm()
        if not 0 < length < torch.inf:
            raise ValueError(f"the embedding has length {length:g}")
        return values / length


def load_encoder(path: Path, function: str | None = None) -> SentenceEncoder:
    """Load a sentence encoder in float32.

    Args:
        path: a folder of Hugging Face files or a Python file. Where sentence-transformers' folder
            1_Pooling says how vectors become an embedding, that is done; else their mean is taken.
        function: of the Python file, which returns (model, tokeniser): `module` of the result, and
            a function from a text to tokens or a tokeniser of transformers.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no encoder, its tokeniser does not fit it, or its embeddings are made
            in another way.
    """
    found = load_as("AutoModel", "sentence encoder", path, function)
    pooling = _pooling(path)
    return replace(
        SentenceEncoder(**vars(found), pooling=pooling), digest=f"{found.digest} {pooling}"
    )


def _pooling(path: Path) -> str:
    file = path / "1_Pooling" / "config.json"
    if not file.is_file():
        return MEAN
    said = json.loads(file.read_text(encoding="utf-8"))
    for pooling in (MEAN, FIRST):
        if said.get(f"pooling_mode_{pooling}"):
            return pooling
    raise ValueError(f"{file} must have the pooling {MEAN} or {FIRST}")
