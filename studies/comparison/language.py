"""Perplexity of a language model in formats, and energy of its products."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from axs6.install import install_command
from axs6.sim.cache import kept, sources
from axs6.studies.comparison import hardware
from axs6.studies.comparison.columns import GROUPS
from axs6.studies.comparison.errors import FP32, Found
from axs6.studies.comparison.hardware import Advance
from axs6.studies.comparison.table import Cell
from axs6.studies.language import request
from axs6.studies.language.request import Setting

if TYPE_CHECKING:
    from torch import Tensor

    from axs6.studies.language.models import LanguageModel
    from axs6.studies.language.work import CountedProduct

LANGUAGE_MODEL = "smollm2"
"""The model, by its name in `axs6 study perplexity`."""


def perplexity(names: Sequence[str]) -> Found:
    """Perplexity of a language model in each format, and in FP32; or the reason why it is
    missing."""
    columns = [column.name for column in GROUPS["perplexity"].columns]
    missing = missing_model()
    if missing is not None:
        yield from ((name, column, missing) for name in names for column in columns)
        return
    from axs6.studies.language.perplexity import row_of
    from axs6.studies.language.windows import Window, run, window_key

    model, tokens = _measured()

    def measured(setting: Setting) -> list[Window]:
        keys = [window_key(model.digest, setting, each) for each in tokens]
        return kept("perplexity", keys, list[Window], lambda: run(model, setting, tokens))

    reference = measured(Setting())
    yield FP32, "perplexity", row_of(Setting(), reference, reference).perplexity
    for name in names:
        setting = Setting.of(name)
        try:
            row = row_of(setting, measured(setting), reference)
            found: Sequence[Cell] = (row.perplexity, row.ratio, row.ratio_error or 0.0)
        except ValueError as error:
            found = [str(error)] * len(columns)
        yield from ((name, column, cell) for column, cell in zip(columns, found, strict=True))


def missing_model() -> str | None:
    """Why the language model cannot be run; None where it can."""
    if find_spec("transformers") is None:
        return f"transformers is missing: {install_command('lm')}"
    try:
        request.model_path(LANGUAGE_MODEL)
    except ValueError as error:
        return str(error)
    return None


@cache
def _measured() -> "tuple[LanguageModel, Tensor]":
    """The model and the windows of tokens that it is measured on."""
    from axs6.studies.language.models import load
    from axs6.studies.language.texts import documentation, windows

    model = load(*request.model_path(LANGUAGE_MODEL))
    return model, windows(model, documentation(), request.TOKENS, request.WINDOW)


def token(names: Sequence[str], settings: dict[str, Any], advance: Advance) -> Found:
    """Energies of a language model's dot products and encoders for one token, in microjoules; or
    the reasons why they are missing."""
    from axs6.studies.language.work import encoded_values, tile_macs

    dots = hardware.used("block_dot", names, settings, advance)
    encoders = hardware.used("encoder", names, settings, advance, hardware.CONVERTED)
    some = missing_model() or _products(names[0])
    for name, *units in zip(names, dots, encoders, strict=True):
        found = [*map(_microjoules, (tile_macs, encoded_values), (some, some), units)]
        total = next((x for x in found if isinstance(x, str)), None) or sum(map(float, found))
        columns = (column.name for column in GROUPS["token"].columns)
        yield from ((name, *cell) for cell in zip(columns, (*found, total), strict=True))


def _microjoules(
    count: "Callable[[Iterable[CountedProduct], int], int]",
    some: "list[CountedProduct] | str",
    used: hardware.Consumed | str,
) -> Cell:
    """Energy of a token, or the reason why it is missing.

    Args:
        count: gives the operations of products on a unit with lanes. some: the products of a
        window. used: energy of one operation.
    """
    if isinstance(some, str) or isinstance(used, str):
        return some if isinstance(some, str) else str(used)
    return count(some, used.lanes) / request.WINDOW * used.femtojoules * 1e-9


def _products(name: str) -> "list[CountedProduct]":
    """The products of the first window in a format: those in others have the same sizes."""
    from axs6.studies.language.windows import window_key
    from axs6.studies.language.work import CountedProduct, products

    model, tokens = _measured()
    setting = Setting.of(name)
    key = [window_key(model.digest, setting, tokens[0]), sources("axs6.studies.language")]
    return kept("work", key, list[CountedProduct], lambda: products(model, setting, tokens[0]))
