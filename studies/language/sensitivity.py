"""Harm of a format at each place of a language model, and a policy that spares the worst ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axs6.golden.accumulator import accumulator
from axs6.golden.formats import block_format
from axs6.golden.terms import Terms
from axs6.studies.language.linear import linear_layers, shared_copy
from axs6.studies.language.models import LanguageModel, scores
from axs6.studies.language.perplexity import row_of, run_windows
from axs6.studies.language.quantised import excluded
from axs6.studies.language.request import BOTH, FP32, WEIGHTS, Setting
from axs6.studies.language.tasks import TaskOptions
from axs6.studies.language.windows import Window
from axs6.tables import Column, Table, Tabular, table_of, words
from axs6.torch import Policy
from axs6.torch.counted import Counter
from axs6.torch.policy import LayerRule
from axs6.torch.report import ReportRow

COLUMNS = (
    words("place"),
    Column("weights", "weights", lambda count: f"{count:,}" if count else "-"),
    Column("ratio", "x FP32", ".5f"),
    Column("ratio_error", "+-", ".2g"),
    Column("qsnr_db", "QSNR dB", ".1f"),
)


@dataclass(frozen=True)
class Place:
    """A place of products alone in a format.

    Args:
        place: name of its module.
        weights: how many it has; 0 for the products of attention.
        ratio: perplexity over that of FP32.
        ratio_error: its standard error over windows; None for one window.
        qsnr_db: of the model's scores, against those in FP32; None where they are the same.
    """

    place: str
    weights: int
    ratio: float
    ratio_error: float | None
    qsnr_db: float | None


@dataclass(frozen=True)
class Sensitivity(Tabular):
    """The places of a model, those that hurt most first.

    Args:
        model: its name.
        format: in which each place is.
        part: of the operands: "weights", "activations" or "both".
        head: name of the layer that is left in FP32; None where there is none.
        text: name of the text.
        windows, window: how many there are, of how many tokens.
        perplexity: in FP32.
        places: by falling ratio.
    """

    model: str
    format: str
    part: str
    head: str | None
    text: str
    windows: int
    window: int
    perplexity: float
    places: tuple[Place, ...]

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        return {"study": "sensitivity", **asdict(self)}

    def table(self) -> Table:
        """A row for each place."""
        return table_of(COLUMNS, map(vars, self.places))

    def policy(self, wide: str, bits: float) -> Policy:
        """A policy with what hurts most in a wider format.

        Weights are taken in the order of harm, the logarithm of the ratio, for each bit that they
        cost more, as long as all together have no more than `bits` a weight with their scales.
        Attention's products have no weights and stay in the study's format.

        Args:
            wide: the wider format.
            bits: most bits a weight, over all places.

        Raises:
            TypeError, ValueError: as `check_policy`.
        """
        check_policy(self.format, self.part, wide, bits)
        low, high = (_bits(each) for each in (self.format, wide))
        left = sum(place.weights for place in self.places) * (bits - low)
        harms = {
            place.place: (math.log(place.ratio), place.weights * (high - low))
            for place in self.places
            if place.weights and place.ratio > 1
        }
        rules = (
            [] if self.head is None else [LayerRule("name", escape(self.head), {"format": "fp32"})]
        )
        key = "weights" if self.part == WEIGHTS else "format"
        for name in sorted(harms, key=lambda each: harms[each][0] / harms[each][1], reverse=True):
            cost = harms[name][1]
            if cost <= left:
                left -= cost
                rules.append(LayerRule("name", escape(name), {key: wide}))
        return Policy({"format": self.format}, tuple(rules))


def _bits(name: str) -> float:
    return float(block_format(name).bits_a_value[0])


def check_policy(fmt: str, part: str, wide: str, bits: float) -> None:
    """Raise TypeError or ValueError unless a study of a part in a format can make this policy."""
    low, high = _bits(fmt), _bits(wide)
    if part not in (WEIGHTS, BOTH):
        raise ValueError(f"a policy by bits a weight needs --part weights or both, not {part}")
    if high <= low:
        raise ValueError(f"wide must have more bits than {fmt}'s {low:g}, not {high:g} of {wide}")
    if not low <= bits:
        raise ValueError(f"bits must be at least {fmt}'s {low:g}, not {bits:g}")
    left, right = (fmt if part == WEIGHTS else wide, wide)
    Terms.of(block_format(left), block_format(right), accumulator(FP32))


def study_sensitivity(
    name: str,
    origin: tuple[Path, str | None],
    model: LanguageModel,
    windows: Tensor,
    fmt: str,
    options: TaskOptions[Window],
    *,
    part: str = BOTH,
    head: bool = False,
    text: str = "text",
) -> Sensitivity:
    """Measure what each place of products does to a model when it alone is in a format.

    A place is a linear layer, or the products of activations that a module computes itself, as
    attention does.

    Args:
        part: "weights", "activations" or "both"; places without weights are left out of "weights".
            With "both" the products are the hardware's; with one part, torch multiplies by what
            its blocks decode to.
        head: whether the layer that scores tokens is a place too.

    The other arguments and errors are those of `study_perplexity`.
    """
    left = excluded(model, Setting(head=head))
    weights = dict(places(model, windows[0], left, part))
    settings = {place: Setting(fmt, fmt, place=place, part=part, head=head) for place in weights}
    found = run_windows(
        *(origin, model, windows, [Setting(), *settings.values()], options), by_window=True
    )
    reference = found[Setting()]
    rows = [
        _place(place, weights[place], setting, found[setting], reference)
        for place, setting in settings.items()
    ]
    count, size = windows.shape
    perplexity = row_of(Setting(), reference, reference).perplexity
    ordered = tuple(sorted(rows, key=lambda row: row.ratio, reverse=True))
    return Sensitivity(name, fmt, part, left, text, count, size, perplexity, ordered)


def _place(
    place: str, weights: int, setting: Setting, found: Sequence[Window], reference: Sequence[Window]
) -> Place:
    row = row_of(setting, found, reference)
    signal, noise = (math.fsum(getattr(x, name) for x in found) for name in ("signal", "noise"))
    qsnr = 10 * math.log10(signal / noise) if noise else None
    return Place(place, weights, row.ratio, row.ratio_error, qsnr)


def places(
    model: LanguageModel, tokens: Tensor, exclude: str | None, part: str
) -> Iterator[tuple[str, int]]:
    """Names of places of products, and how many weights they have, in the order of the model.

    Args:
        model: the model.
        tokens: a window, (T,), over which products of activations are looked for.
        exclude: name of a layer that is none.
        part: without "activations" only places with weights.

    Raises:
        ValueError: the model multiplies in its own `forward`, or there is no place.
    """
    layers = linear_layers(shared_copy(model.module), exclude)
    counted: list[ReportRow] = []
    with torch.inference_mode(), Counter(counted):
        scores(model.module, tokens.unsqueeze(0))
    running = {row.name.rpartition(".")[0] for row in counted} - {exclude}
    if "" in running:
        raise ValueError(
            "the model's own forward has products that are in no layer or attention module"
        )
    if part == WEIGHTS:
        running = set()
    names = [name for name, _ in model.module.named_modules() if name in layers or name in running]
    if not names:
        raise ValueError("the model has no place of products")
    for name in names:
        yield name, layers[name].weight.numel() if name in layers else 0
