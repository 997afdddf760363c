"""The figures in README and docs are those of the designs and sources as they are now."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import digests
import figures
import pages
import pytest
from catalogue import FIGURES
from catalogue.depends import TORCH_BITS
from figure import DATA, Figure
from readings import printed

LARGE = ("simulate-cxxrtl", "simulate-encoder", "energy-block-dot", "bound")
"""Figures that are quick once built or synthesised: others are of their kind, and take less."""

LONG = 2
"""Seconds beyond which a figure is measured again by the slow tests alone."""


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_sources_of_figures_are_as_they_were(figure: Figure) -> None:
    changed = figure.changed_sources()
    assert not changed, f"{', '.join(changed)} changed: run `make figures ONLY={figure.name}`"


def with_designs() -> list[Any]:
    """Figures of designs; slow are those of more than one, and those of one that another has."""
    seen: list[Any] = []
    found = []
    for name, each in FIGURES.items():
        if each.designs:
            few = len(each.designs) == 1 and each.designs[0] not in seen
            seen += each.designs if few else ()
            found.append(pytest.param(each, id=name, marks=[pytest.mark.slow] * (not few)))
    return found


@pytest.mark.parametrize("figure", with_designs())
def test_figures_are_up_to_date(figure: Figure) -> None:
    changed = figure.out_of_date()
    assert not changed, f"{', '.join(changed)} changed: run `make figures ONLY={figure.name}`"


@pytest.mark.slow
def test_every_figure_is_measured() -> None:
    missing = [name for name, figure in FIGURES.items() if not figure.stored()]
    assert not missing, "run `make figures`"


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_pages_show_what_is_kept(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert pages.fill(text, FIGURES) == text, "run `make figures`"
    assert text.count("<!-- figure") == len(pages.MARK.findall(text))


def test_every_figure_is_in_a_page() -> None:
    marks = [mark for page in pages.PAGES for mark in pages.MARK.finditer(page.read_text())]
    assert {mark["name"] for mark in marks} == set(FIGURES)
    assert {path.stem for path in DATA.glob("*.json")} <= set(FIGURES)


def again() -> list[Any]:
    """Figures that are measured again; examples are run by their own tests."""
    return [
        pytest.param(each, id=name, marks=[pytest.mark.slow] * slow)
        for name, each in FIGURES.items()
        if each.stored()
        and not each.library
        and not each.commands[0].startswith("python examples/torch_")
        for slow in [each.stored()["seconds"] > LONG or name in LARGE]
    ]


@pytest.mark.parametrize("figure", again())
def test_commands_give_what_is_kept(figure: Figure) -> None:
    assert figure.masked(figure.measure()) == figure.masked(figure.stored())


def test_the_bits_of_torch_depend_on_all_that_computes_them() -> None:
    modules = ("anywhere", "lanes", "ops", "quantise", "kernels/__init__", "kernels/products")
    assert {f"bridge/{name}.py" for name in modules} <= set(TORCH_BITS)
    assert not {"bridge/report.py", "golden/encode.py"} & set(TORCH_BITS)


SPEED = Figure(
    "speed",
    ("python examples/speed.py",),
    printed,
    designs=(("lfsr", {"block": 8}),),
    sources=("examples/*.py", "code/*.hpp"),
    packages=("torch",),
    varies=r"\d+\.\d+ s",
)
PROGRAM = '"""A program."""\nimport time\nprint("4 items,", f"{time.perf_counter():.3f} s")\n'
PAGE = """\
# A page

<!-- figure: speed -->
<!-- /figure -->

As said.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one program, one design, one page and one figure, which is measured."""
    for folder in ("examples", "code", "benchmarks", "vectors", "docs/figures"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "examples/speed.py").write_text(PROGRAM)
    (tmp_path / "code/loop.hpp").write_text("int x;  // a number\n")
    (tmp_path / "docs/page.md").write_text(PAGE)
    shutil.copy(digests.ROOT / "constraints.txt", tmp_path)
    for module in (digests, pages):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr("figure.ROOT", tmp_path)
    monkeypatch.setattr("figure.DATA", tmp_path / "docs/figures")
    monkeypatch.setattr(figures, "DATA", tmp_path / "docs/figures")
    monkeypatch.setattr(figures, "PAGES", (tmp_path / "docs/page.md",))
    monkeypatch.setattr(figures, "FIGURES", {"speed": SPEED})
    digests.of_files.cache_clear()
    digests.of_package.cache_clear()
    assert figures.main([]) == 0
    yield tmp_path
    digests.of_files.cache_clear()
    digests.of_package.cache_clear()


def changed(path: Path, old: str, new: str) -> list[str]:
    """What is out of date after a change of a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    digests.of_files.cache_clear()
    digests.of_package.cache_clear()
    return SPEED.out_of_date()


def test_a_page_is_filled_with_machine_and_date(project: Path) -> None:
    kept = SPEED.stored()
    (line,) = kept["output"][0]
    assert (project / "docs/page.md").read_text() == PAGE.replace(
        "<!-- /",
        f"```\n$ python examples/speed.py\n{line}\n```\n\n"
        f"Measured on {kept['machine']}, {kept['date']}.\n\n<!-- /",
    )
    assert SPEED.masked(kept)["output"] == [["4 items, #"]]
    assert SPEED.out_of_date() == []


def test_layout_and_comments_do_not_count(project: Path) -> None:
    assert changed(project / "examples/speed.py", "import", "# for the clock\nimport") == []
    assert changed(project / "examples/speed.py", "A program", "This program") == []
    assert changed(project / "code/loop.hpp", "int x;  // a number", "int\n  x;") == []


def test_changed_sources_are_found(project: Path) -> None:
    assert changed(project / "examples/speed.py", "4 items", "5 items") == ["examples/*.py"]
    assert changed(project / "code/loop.hpp", "int", "long") == ["examples/*.py", "code/*.hpp"]
    assert changed(project / "constraints.txt", "torch==", "torch==9.") == [
        "examples/*.py",
        "code/*.hpp",
        "torch",
    ]
    assert figures.main(["--only", "speed"]) == 0
    assert SPEED.out_of_date() == []
    assert "5 items" in (project / "docs/page.md").read_text()


def test_a_changed_design_is_found(project: Path) -> None:
    other = dataclasses.replace(SPEED, designs=(("lfsr", {"block": 16}),))
    assert other.out_of_date() == ["lfsr block=8", "lfsr block=16"]
    kept = SPEED.stored()
    kept["measured_on"]["lfsr block=8"] = "0123456789abcdef"
    SPEED.path.write_text(json.dumps(kept))
    assert SPEED.out_of_date() == ["lfsr block=8"]


def test_a_page_of_other_numbers_is_found(project: Path) -> None:
    page = project / "docs/page.md"
    text = page.read_text()
    assert pages.fill(text, {"speed": SPEED}) == text
    wrong = text.replace("4 items", "400 items")
    assert pages.fill(wrong, {"speed": SPEED}) == text


def test_a_command_that_fails_keeps_the_old_figure(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = SPEED.path.read_text()
    assert changed(project / "examples/speed.py", "import time", "raise SystemExit('no clock')")
    assert figures.main([]) == 1
    assert "speed: python examples/speed.py: no clock" in capsys.readouterr().err
    assert SPEED.path.read_text() == before
    assert SPEED.out_of_date() == ["examples/*.py"]


def test_a_page_says_what_was_not_measured(project: Path) -> None:
    SPEED.path.unlink()
    figures.fill_pages()
    text = (project / "docs/page.md").read_text()
    assert "\nNot measured yet: `make figures ONLY=speed` does it.\n" in text
    assert "4 items" not in text
    assert figures.main([]) == 0
    assert "4 items" in (project / "docs/page.md").read_text()


def test_marks_must_name_figures(project: Path) -> None:
    with pytest.raises(ValueError, match="must name one of the catalogue, not sped"):
        pages.fill("<!-- figure: sped --><!-- /figure -->", {"speed": SPEED})
    with pytest.raises(ValueError, match="must not begin with the value speed"):
        pages.fill("at\n<!-- figure: speed.rate -->1<!-- /figure -->", {"speed": SPEED})


def test_marks_may_name_cells_of_tables(project: Path) -> None:
    table = {"columns": ["unit", "a MAC"], "rows": [["dot", 1234.5]]}
    SPEED.path.write_text(json.dumps({**SPEED.stored(), "table": table}))
    empty = "at <!-- figure: speed.dot.a MAC --><!-- /figure -->"
    filled = pages.fill(empty, {"speed": SPEED})
    assert filled == "at <!-- figure: speed.dot.a MAC -->1,234.5<!-- /figure -->"
    for wrong in ("dots.a MAC", "dot.a"):
        with pytest.raises(ValueError, match=f"must name a row and a column of speed, not {wrong}"):
            pages.fill(empty.replace("dot.a MAC", wrong), {"speed": SPEED})


def test_tables_have_numbers_to_the_right() -> None:
    content = {"columns": ["unit", "area", "MHz"], "rows": [["dot", 1234.5, "-"], ["a", 7, 2]]}
    assert pages.table(content) == (
        "| unit | area | MHz |\n| --- | ---: | ---: |\n| dot | 1,234.5 | - |\n| a | 7 | 2 |"
    )
