"""The models of the training study: a character model and a vision transformer."""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

PATCH = 2


@dataclass(frozen=True)
class TransformerSize:
    """Size of a transformer.

    Args:
        width: features of a token.
        heads: of attention; they divide the width.
        layers: number of blocks.
    """

    width: int
    heads: int
    layers: int


SMALL: Final = TransformerSize(64, 2, 2)
MIDDLE: Final = TransformerSize(160, 5, 4)
"""Transformers of about 0.1 and 1.3 million parameters."""


class Attention(nn.Module):
    """Self-attention.

    Args:
        size: features and heads.
        causal: whether a token sees only those before it and itself.
    """

    def __init__(self, size: TransformerSize, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = size.heads, causal
        self.projections = nn.Linear(size.width, 3 * size.width)
        self.output = nn.Linear(size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, width) to the same."""
        count, tokens, width = x.shape
        parts = self.projections(x).view(count, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        projected: Tensor = self.output(y.transpose(1, 2).reshape(count, tokens, width))
        return projected


class TransformerBlock(nn.Module):
    """Attention and a perceptron of 4 x width units, each after a norm and added to its input."""

    def __init__(self, size: TransformerSize, causal: bool) -> None:
        super().__init__()
        width = size.width
        self.first_norm = nn.LayerNorm(width)
        self.attention = Attention(size, causal)
        self.second_norm = nn.LayerNorm(width)
        units = (nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.perceptron = nn.Sequential(*units)

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, width) to the same."""
        x = x + self.attention(self.first_norm(x))
        return x + self.perceptron(self.second_norm(x))


class CharacterModel(nn.Module):
    """A GPT over characters: blocks on embedded characters with learnt positions.

    Args:
        characters: how many there are.
        context: characters that it reads at once, at most.
        size: of the transformer.
    """

    def __init__(self, characters: int, context: int, size: TransformerSize = SMALL) -> None:
        super().__init__()
        width, layers = size.width, range(size.layers)
        self.embedding = nn.Embedding(characters, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(TransformerBlock(size, causal=True) for _ in layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x: Tensor) -> Tensor:
        """Characters (N, T) to scores of the next one, (N, T, characters)."""
        y: Tensor = self.blocks(self.embedding(x) + self.positions[: x.shape[1]])
        scores: Tensor = self.head(self.norm(y))
        return scores


class VisionTransformer(nn.Module):
    """A ViT on images of 8 x 8 pixels: 2 x 2 patches, the blocks, the mean token."""

    def __init__(self) -> None:
        super().__init__()
        width, layers = SMALL.width, range(SMALL.layers)
        self.embedding = nn.Conv2d(1, width, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.5 * torch.randn((8 // PATCH) ** 2, width))
        self.blocks = nn.Sequential(*(TransformerBlock(SMALL, causal=False) for _ in layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(N, 8, 8) to (N, 10)."""
        tokens = self.embedding(images.unsqueeze(1)).flatten(2).mT
        y: Tensor = self.blocks(tokens + self.positions)
        scores: Tensor = self.head(self.norm(y).mean(1))
        return scores
