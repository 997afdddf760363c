"""The models of the training study: a character model and a vision transformer."""

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS = 64, 2, 2
PATCH = 2


class Attention(nn.Module):
    """Self-attention of `WIDTH` features with `HEADS` heads.

    Args:
        causal: whether a token sees only those before it and itself.
    """

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, WIDTH) to the same."""
        count, tokens, _ = x.shape
        parts = self.projections(x).view(count, tokens, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        projected: Tensor = self.output(y.transpose(1, 2).reshape(count, tokens, WIDTH))
        return projected


class TransformerBlock(nn.Module):
    """Attention and a perceptron of 4 * `WIDTH` units, each after a norm and added to its input."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.first_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention(causal)
        self.second_norm = nn.LayerNorm(WIDTH)
        units = (nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.perceptron = nn.Sequential(*units)

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, WIDTH) to the same."""
        x = x + self.attention(self.first_norm(x))
        return x + self.perceptron(self.second_norm(x))


class CharacterModel(nn.Module):
    """A GPT over characters: `LAYERS` blocks on embedded characters with learnt positions.

    Args:
        characters: how many there are.
        context: characters that it reads at once, at most.
    """

    def __init__(self, characters: int, context: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(context, WIDTH))
        self.blocks = nn.Sequential(*(TransformerBlock(causal=True) for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, characters)

    def forward(self, x: Tensor) -> Tensor:
        """Characters (N, T) to scores of the next one, (N, T, characters)."""
        y: Tensor = self.blocks(self.embedding(x) + self.positions[: x.shape[1]])
        scores: Tensor = self.head(self.norm(y))
        return scores


class VisionTransformer(nn.Module):
    """A ViT on images of 8 x 8 pixels: 2 x 2 patches, `LAYERS` blocks, the mean token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Conv2d(1, WIDTH, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.5 * torch.randn((8 // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*(TransformerBlock(causal=False) for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(N, 8, 8) to (N, 10)."""
        tokens = self.embedding(images.unsqueeze(1)).flatten(2).mT
        y: Tensor = self.blocks(tokens + self.positions)
        scores: Tensor = self.head(self.norm(y).mean(1))
        return scores
