"""The columns of a comparison, in groups that can be chosen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from axs6.studies.request import BUILT_IN
from axs6.tables import Column

DISTRIBUTIONS: Final = ("paper", "gauss", "uniform", "laplace", "student", "outliers")
"""Columns of `axs6.studies.distributions`."""

KINDS: Final = ("weights", "activations", "gradients")
"""Columns of `axs6.studies.recorded`."""


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that are measured together.

    Args:
        columns: in their order.
        what: description for readers of a table.
    """

    columns: tuple[Column, ...]
    what: str


GROUPS: Final[Mapping[str, ColumnGroup]] = {
    "bits": ColumnGroup(
        (
            Column("bits", "bits", "g"),
            Column("packed_bits", "packed", "g"),
            Column("memory_bits", "memory", "g"),
        ),
        "bits, packed, memory: bits of a value: its code and its share of the scales; blocks of "
        "whole bytes; 256 values in memory lines of 64 bytes",
    ),
    "qsnr": ColumnGroup(
        tuple(Column(f"{name}_db", name, ".2f") for name in (*DISTRIBUTIONS, "bound")),
        "paper to outliers: QSNR in dB of random vectors: normal with a standard deviation of its "
        "own for each vector; normal; uniform; Laplace; Student's t with 3 degrees of freedom; "
        "normal with 1 value of 256 that is 32 times larger; bound: what Theorem 1 of the "
        "shared-microexponents paper guarantees for any values, in dB",
    ),
    "recorded": ColumnGroup(
        tuple(Column(f"{kind}_db", kind, ".2f") for kind in KINDS),
        "weights, activations, gradients: QSNR in dB of the matrices of the models mlp, cnn and "
        "transformer in FP32: -10 log10 of the mean over matrices of noise over signal",
    ),
    "cost": ColumnGroup(
        (
            Column("lanes", "lanes", "d"),
            Column("dot_area", "dot", ",.0f"),
            Column("mac_area", "a MAC", ",.0f"),
            Column("delay_ps", "ps", ",.0f"),
            Column("of_bound", "of bound", ".0%"),
            Column("encoder_area", "encoder", ",.0f"),
            Column("value_area", "a value", ",.0f"),
            Column("decoder_area", "decoder", ",.0f"),
        ),
        "dot, a MAC, ps: area and longest path of the block dot product, without registers, and "
        "its area over its lanes; of bound: the area of its products' gates and full adders over "
        "its area; encoder, decoder: their areas, for as many values of bf16; a value: the area of "
        "the encoder over its values",
    ),
    "energy": ColumnGroup(
        (Column("mac_fj", "fJ", ",.1f"),),
        "fJ: energy of a MAC of the dot product on the layers of a digits classifier",
    ),
    "accuracy": ColumnGroup(
        (
            *(Column(f"{name}_accuracy", name, ".2%") for name in BUILT_IN),
            *(Column(f"{name}_loss", f"{name} loss", ".4f") for name in BUILT_IN),
        ),
        "mlp, cnn, transformer: share of the test images that the models classify correctly with "
        "all their products in the format, and their mean cross-entropy in nats",
    ),
    "perplexity": ColumnGroup(
        (
            Column("perplexity", "perplexity", ",.1f"),
            Column("perplexity_ratio", "x FP32", ",.3f"),
            Column("perplexity_error", "+-", ".3f"),
        ),
        "perplexity: of SmolLM2 with 135 million parameters on 16 windows of 512 tokens of "
        "Python's documentation, weights and activations in the format and the head in FP32; "
        "x FP32, +-: over that of FP32, and the standard error of this ratio over windows",
    ),
    "token": ColumnGroup(
        (
            Column("token_dots_uj", "dots µJ", ",.1f"),
            Column("token_encoders_uj", "encoders µJ", ",.2f"),
            Column("token_uj", "µJ a token", ",.1f"),
        ),
        "dots, encoders, a token: energy of the products of that model for one token of a window, "
        "without the head: of the MACs on a tile of 4 x 4 dot products, of encoding activations, "
        "and both; by the energies of an operation on the layers of a digits classifier",
    ),
}
"""The groups by their names, slow ones last."""


def choose_columns(
    names: Iterable[str], known: Mapping[str, ColumnGroup]
) -> dict[str, ColumnGroup]:
    """The chosen columns in their groups, each once and in the usual order.

    Args:
        names: of groups, or of single columns with their group: `cost.mac_area`.
        known: the groups by their names.

    Raises: ValueError: a group or a column of it is unknown, or none is given.
    """
    wanted: dict[str, set[str]] = {}
    for name in names:
        group, dot, column = name.partition(".")
        if group not in known:
            raise ValueError(f"columns must be of {', '.join(known)}, not {name!r}")
        every = {each.name: each for each in known[group].columns}
        if dot and column not in every:
            raise ValueError(f"columns of {group} must be of {', '.join(every)}, not {column!r}")
        wanted.setdefault(group, set()).update([column] if dot else every)
    if not wanted:
        raise ValueError(f"columns must be at least one of {', '.join(known)}, not none")
    return {
        name: replace(group, columns=tuple(x for x in group.columns if x.name in wanted[name]))
        for name, group in known.items()
        if name in wanted
    }
