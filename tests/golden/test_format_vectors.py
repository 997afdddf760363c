"""The vectors of block formats are those that the generator writes, and both models give them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sampling import formats

from axs6.golden.formats import CATALOG, block_format
from axs6.golden.vectors import Subject, Vector, format_subjects
from axs6.golden.vectors.__main__ import main
from axs6.golden.vectors.formats import NAMES, FormatVectors

FOLDER = Path(__file__).parents[2] / "vectors"
SUBJECTS = format_subjects()
KINDS = ("elements", "scales", "encode", "dot")

every_format = pytest.mark.parametrize("name", NAMES)
few_formats = pytest.mark.parametrize("name", formats(NAMES, together=1))


def of_format(name: str) -> list[Subject]:
    return [SUBJECTS[f"formats/{name}/{kind}"] for kind in KINDS]


def committed(subject: Subject) -> list[Vector]:
    return subject.read((FOLDER / subject.file_name).read_text())


@few_formats
def test_the_generator_writes_the_committed_files(name: str) -> None:
    for subject in of_format(name):
        written = subject.write(subject.vectors()).split("\n")
        there = (FOLDER / subject.file_name).read_text().split("\n")
        assert [x for x, y in zip(written, there, strict=False) if x != y] == []
        assert len(written) == len(there)
        assert max(map(len, there)) < 8000


@few_formats
def test_both_models_give_the_outputs(name: str) -> None:
    for subject in of_format(name):
        found = committed(subject)
        assert list(subject.differences(found)) == []
        assert len({str(each.inputs) for each in found}) == len(found)


def test_the_folders_hold_the_catalog_and_ten_thousand_cases() -> None:
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("formats/*/*")}
    assert there == {subject.file_name for subject in SUBJECTS.values()}
    assert {*NAMES, "axs6"} == set(CATALOG)
    assert sum(len(committed(subject)) for subject in SUBJECTS.values()) > 10_000
    assert sum((FOLDER / name).stat().st_size for name in there) < 4 << 20


@every_format
def test_every_code_and_kind_of_case_is_there(name: str) -> None:
    fmt = block_format(name)
    elements, scales, encoded, dots = map(committed, of_format(name))
    assert [each.inputs["code"] for each in elements] == list(range(len(fmt.element.integers)))
    for number, level in enumerate(fmt.levels[::-1]):
        codes = {each.inputs["code"] for each in scales if each.inputs["level"] == number}
        least = min(1 << level.scale.bits, 100 if level.scale.bits == 8 else 40)
        assert len(codes) >= least - 1
        assert level.scale.nan_code is None or level.scale.nan_code in codes
    names = {each.name for each in encoded}
    assert {"zeros", "negative_zeros", "smallest", "largest", "random"} <= names
    assert {"special", "next_to_a_midpoint", "nan_or_infinite"} <= names
    policies = {each.inputs["nonfinite"] for each in encoded}
    assert policies == ({"saturate", "propagate"} if fmt.has_nan else {"saturate"})
    assert {len(each.inputs["values"]) % fmt.block == 0 for each in encoded} == {True, False}
    used = {code for each in encoded for code in each.outputs["packed"]}
    assert len(used) > 60
    sums = {each.outputs["sum"] for each in dots}
    assert {"0"} < sums
    assert len(sums) > 30
    of_blocks = any(level.blocked and level.scale.nan_code for level in fmt.levels)
    assert ("nan" in sums) == (fmt.element.has_nan or of_blocks)
    assert any(word.startswith("-") for word in sums)


def test_one_wrong_character_is_found_in_every_output() -> None:
    for subject in of_format("mxfp8_e5m2"):
        vectors = committed(subject)
        for field in subject.outputs:
            kind = subject.outputs[field]
            for vector in vectors[:: len(vectors) // 5]:
                word = kind.write(vector.outputs[field])
                other = kind.read(word[:-1] + ("1" if word[-1] == "0" else "0"))
                wrong, outputs = kind.write(other), {**vector.outputs, field: other}
                messages = list(subject.differences([vector._replace(outputs=outputs)]))
                assert [f"{field} is {wrong}" in message for message in messages] == [True] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_model_is_found(kind: str) -> None:
    subject = SUBJECTS[f"formats/nvfp4/{kind}"]
    found = committed(subject)
    answers = iter([*found[1:], found[0]])
    wrong = replace(subject, golden=lambda **_: tuple(next(answers).outputs.values()))
    messages = list(wrong.differences(found))
    assert len(messages) > len(found) // 2
    assert all("the golden model gives" in message for message in messages)


@pytest.mark.parametrize(
    "name",
    ["mx9_t32", "e4m3fn_e5m0_t8_float32", "uint6_float32_uint6_t16", "sm5d_e8m0_t16"],
)
def test_the_command_writes_any_format_and_number(name: str, tmp_path: Path, capsys) -> None:
    for count in (2, 9):
        assert main([str(tmp_path), "--format", name, "--cases", str(count)]) == 0
        assert capsys.readouterr().out.count("wrote") == len(KINDS)
        (dots,) = (
            x for x in FormatVectors(block_format(name), count).subjects() if "dot" in x.name
        )
        found = dots.read((tmp_path / dots.file_name).read_text())
        assert 3 * count <= len(found) <= 3 * count + 6
    assert [path.name for path in (tmp_path / "formats").iterdir()] == [name]


def test_sums_that_are_infinite_or_nothing() -> None:
    """Of E5M2, whose elements are infinite: by hand, one product each."""
    dot = next(
        x for x in FormatVectors(block_format("e5m2_e8m0_t1"), 1).subjects() if "dot" in x.name
    )
    one, infinity, nan, zero = b"\x7f\x3c", b"\x7f\xfc", b"\xff\x3c", b"\x7f\0"
    for a, b, expected in (
        (one, infinity, ("-inf", 0)),
        (infinity, infinity, ("inf", 0)),
        (infinity, zero, ("nan", 0)),
        (one, nan, ("nan", 0)),
        (one, b"\x80\xbd", ("-5", -1)),
        (one, zero, ("0", 0)),
    ):
        assert dot.exact(a=a, b=b) == dot.golden(a=a, b=b) == expected


def test_the_page_explains_lines_of_the_files() -> None:
    page = (FOLDER.parent / "docs" / "vectors.md").read_text()
    section = page.split("\n## Other block formats\n")[1].split("\n## ")[0]
    for kind, subject in zip(KINDS, of_format("mx6"), strict=True):
        assert f"| `{kind}.txt` | `{subject.head[-1][2:]}` |" in section
    shown = [x for x in section.splitlines() if " -> " in x and not x.startswith("|")]
    names = ("mxfp4", "mx6", "mx6")
    files = (of_format(name)[k] for name, k in zip(names, (0, 2, 3), strict=True))
    for line, subject in zip(shown, files, strict=True):
        assert line in (FOLDER / subject.file_name).read_text().splitlines()


def test_formats_without_vectors() -> None:
    with pytest.raises(ValueError, match="blocks without modes, unlike axs6"):
        FormatVectors(block_format("axs6"))


def test_values_with_a_divisor_are_there_times_it() -> None:
    found = committed(SUBJECTS["formats/if4/elements"])
    patterns = np.array([each.outputs["value"] for each in found], np.uint32)
    e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    sevenths = [*range(8), 0, *range(-7, 0)]
    expected = [*(7 * x for x in e2m1), *(-7 * x for x in e2m1), *(6 * x for x in sevenths)]
    assert patterns.view(np.float32).tolist() == expected
    assert patterns[8] == 1 << 31
    pair = next(x for x in of_format("if4") if "dot" in x.name)
    one, half = bytes.fromhex("0000803fb8" + "77" * 8), bytes.fromhex("0000803f38" + "11" * 8)
    assert pair.exact(a=one, b=half) == pair.golden(a=one, b=half) == ("93", 4)  # 16 * 42 * 3.5


def test_values_in_the_files_are_those_of_fp32() -> None:
    found = committed(SUBJECTS["formats/mxfp4/elements"])
    patterns = np.array([each.outputs["value"] for each in found], np.uint32)
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert patterns.view(np.float32).tolist() == [*magnitudes, *(-x for x in magnitudes)]
    assert patterns[8] == 1 << 31
