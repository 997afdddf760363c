"""The vectors in the repository are those that the generator writes, and both models give them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axs6.golden.check.exact.floats import FP32, FP32_NAN
from axs6.golden.vectors import SUBJECTS, Subject, Vector, __main__
from axs6.golden.vectors.__main__ import main
from axs6.golden.vectors.decoding import unpack_by_golden

FOLDER = Path(__file__).parents[2] / "vectors"

every_subject = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=lambda each: each.name)


def text_of(subject: Subject) -> str:
    return (FOLDER / subject.file_name).read_text()


def committed(name: str) -> list[Vector]:
    return SUBJECTS[name].read(text_of(SUBJECTS[name]))


@every_subject
def test_the_generator_writes_the_committed_file(subject: Subject) -> None:
    # Compared as lists of lines: the message of a long text takes minutes to make.
    written = subject.write(subject.vectors()).split("\n")
    there = text_of(subject).split("\n")
    assert [line for line, other in zip(written, there, strict=False) if line != other] == []
    assert len(written) == len(there)


@every_subject
def test_both_models_give_the_outputs(subject: Subject) -> None:
    found = subject.read(text_of(subject))
    assert list(subject.differences(found)) == []
    assert len(found) >= 10


@every_subject
def test_the_page_explains_lines_of_the_file(subject: Subject) -> None:
    page = (FOLDER.parent / "docs" / "vectors.md").read_text()
    section = page.split(f"\n## {subject.file_name}\n")[1].split("\n## ")[0]
    assert section.startswith(f"\n`{subject.head[-1][2:]}`\n")
    shown = [line for line in section.splitlines() if " -> " in line][1:]
    lines = text_of(subject).splitlines()
    assert shown
    assert [line for line in shown if line not in lines] == []
    assert max(map(len, lines)) < 4000


def test_there_is_no_other_file() -> None:
    names = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert names == {s.file_name for s in SUBJECTS.values()}


@every_subject
def test_no_case_is_there_twice(subject: Subject) -> None:
    cases = [str(each.inputs) for each in subject.read(text_of(subject))]
    assert len(set(cases)) == len(cases)


def flipped(word: str) -> str:
    """A word of a line with its last character changed, a number into another number."""
    last = word[-1]
    return word[:-1] + ("1" if last == "0" else "0")


@every_subject
def test_one_wrong_character_is_found_in_every_output(subject: Subject) -> None:
    lines = text_of(subject).splitlines()
    number = len(lines) // 2
    words = lines[number].split()
    first = words.index("->") + 1
    for place, field in enumerate(subject.outputs, first):
        wrong = [flipped(word) if k == place else word for k, word in enumerate(words)]
        found = subject.read("\n".join([*lines[:number], " ".join(wrong), *lines[number + 1 :]]))
        around = [vector for vector in found if abs(vector.line - number) < 4]
        messages = list(subject.differences(around))
        assert len(messages) == 2
        for message, model in zip(messages, ("exact", "golden"), strict=True):
            assert message.startswith(
                f"{subject.file_name}:{number + 1}: {words[0]}: {field} is {wrong[place]}, "
                f"the {model} model gives {words[place]}"
            )


@every_subject
def test_a_wrong_model_is_found(subject: Subject) -> None:
    """A model that gives every case what is right for the next one."""
    found = subject.read(text_of(subject))
    answers = iter([*found[1:], found[0]])
    wrong = replace(subject, golden=lambda **_: tuple(next(answers).outputs.values()))
    messages = list(wrong.differences(found))
    assert messages
    assert all("the golden model gives" in message for message in messages)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("zeros 8 0 0 0 0 -> 0", r"block_dot.txt:2: needed are the fields name block a_exponent"),
        ("zeros 8 0 0 0 0 0 0 0", r"block_dot.txt:2: needed are the fields name block a_exponent"),
        ("zeros 8 0 0,g 0 0 -> 0 0", r"block_dot.txt:2: a_codes: invalid literal"),
        ("", r"block_dot.txt:2: needed are the fields"),
    ],
)
def test_lines_that_are_no_cases_are_named(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SUBJECTS["block_dot"].read(f"# comment\n{line}\n")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    small = {name: SUBJECTS[name] for name in ("block_dot", "lfsr")}
    monkeypatch.setattr(__main__, "SUBJECTS", small)
    monkeypatch.setattr(__main__, "format_subjects", lambda formats, count: {})
    folder = tmp_path / "new"
    assert main([str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == f"wrote {folder}/lfsr.txt: {len(committed('lfsr'))} cases"
    for subject in small.values():
        assert (folder / subject.file_name).read_text() == text_of(subject)
    assert len(list(folder.iterdir())) == len(small)


def test_nothing_is_written_where_the_models_differ(tmp_path: Path, capsys, monkeypatch) -> None:
    wrong = replace(SUBJECTS["block_dot"], golden=lambda **_: (0, 0))
    monkeypatch.setattr(__main__, "SUBJECTS", {"block_dot": wrong})
    assert main([str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("axs6: block_dot.txt:4: largest: sum is 7688, the golden model gives 0")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_the_command(tmp_path: Path, capsys) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    for arguments, message in (
        ([], "needed: python -m axs6.golden.vectors DIRECTORY"),
        (["--help"], "needed: python -m axs6.golden.vectors DIRECTORY"),
        ([str(taken)], str(taken)),
        ([str(tmp_path), "--cases", "0"], "cases must be an integer of at least 1, not 0"),
        ([str(tmp_path), "--cases", "many"], "needed: python -m axs6.golden.vectors DIRECTORY"),
        ([str(tmp_path), "--format", "mxfp5"], "'mxfp5' is no block format"),
        ([str(tmp_path), "--format", "axs6_t8"], "vectors of formats need blocks without modes"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_encoding_is_covered() -> None:
    found = committed("encode") + committed("encode_stochastic")
    inputs = [each.inputs for each in found]
    assert {each["block"] for each in inputs} == {8, 16, 32}
    asked = {
        (each["dtype"], each["rounding"], each["mode"]) for each in inputs if "rounding" in each
    }
    assert len(asked) == 3 * 2 * 4
    asked = {(each["mode"], each["bits"]) for each in inputs if "bits" in each}
    assert asked == {
        (m, r) for m in ("dense", "sparse", "high_precision", "auto") for r in (4, 8, 16)
    }
    outputs = [each.outputs for each in found]
    assert {0, 1, 254, 255} <= {each["exponent"] for each in outputs}
    assert {each["config"] for each in outputs} == {0, 1, 2}
    assert {each["invalid"] for each in outputs} == {0, 1}
    dense = {code for each in outputs if each["config"] != 2 for code in each["codes"]}
    precise = [each["codes"] for each in outputs if each["config"] == 2]
    assert dense == set(range(64))
    assert {code for codes in precise for code in codes[::2]} == set(range(128))
    assert {code for codes in precise for code in codes[1::2]} == set(range(32))


def test_decoding_is_covered() -> None:
    found = [each.outputs for each in committed("decode")]
    for config in (0, 2):
        for exponent in (0, 1, 2, 3, 4, 5, 6, 254, 255):
            codes = np.array(
                [
                    each["codes"]
                    for each in found
                    if (each["config"], each["exponent"], len(each["codes"]))
                    == (config, exponent, 32)
                ]
            )
            assert set(codes[:, ::2].ravel()) | set(codes[:, 1::2].ravel()) == set(
                range(128 if config else 64)
            )
    assert {each.inputs["block"] for each in committed("decode")} == {8, 16, 32}
    assert {each["config"] for each in found} == {0, 1, 2}


def test_faults_are_covered() -> None:
    found = committed("unpack")
    faults = {"none", "truncated", "trailing", "header", "reserved", "mask", "padding"}
    for size in (8, 16, 32):
        for align in (1, 32):
            here = [v for v in found if (v.inputs["block"], v.inputs["align"]) == (size, align)]
            missing = {"padding"} if align == 1 and size != 8 else set()
            assert {v.outputs["fault"] for v in here} == faults - missing
            assert {v.outputs["number"] for v in here} == set(range(5))


def test_products_are_covered() -> None:
    sums = {each.outputs["sum"] for each in committed("block_dot")}
    assert {30752, -30752, 0} <= sums
    assert {0, 510} <= {each.outputs["exponent"] for each in committed("block_dot")}
    for how in ("fp32", "exact"):
        results = {each.outputs[how] for each in committed("dot")}
        assert {FP32.infinity, FP32.sign | FP32.infinity, 0} <= results
        assert any(0 < pattern < 1 << 23 for pattern in results)
        assert (FP32_NAN in results) == (how == "fp32")


def test_an_error_that_is_no_fault_of_bytes_is_raised() -> None:
    with pytest.raises(ValueError, match=r"^block must be one of 8, 16, 32, not 33$"):
        unpack_by_golden(33, 1, 1, bytes(32))
