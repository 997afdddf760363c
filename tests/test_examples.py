"""The examples and the code in the docs run and print what the docs say."""

import doctest
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from catalogue import FIGURES
from pages import PAGES

from axs6.golden.vectors.formats import NAMES

ROOT = Path(__file__).parent.parent


LONG = ("torch_training.py", "torch_digits.py")
"""Examples that train."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.slow] * (path.name in LONG))
        for path in sorted((ROOT / "examples").glob("*.py"))
    ],
)
def test_examples_run(path: Path) -> None:
    done = subprocess.run([sys.executable, path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for figure in FIGURES.values():
        if figure.commands == (f"python examples/{path.name}",):
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            found, kept = (figure.masked(x) for x in ({"output": [printed]}, figure.stored()))
            assert found == kept, f"make figures ONLY={figure.name}"


def test_the_design_on_axi4_stream(tmp_path: Path) -> None:
    files = tmp_path / "axis_top.v", tmp_path / "axis.svg"
    # Icarus builds in no time; what builds for minutes is the same.
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    command = [sys.executable, "run.py", "--block", "8", "--simulator", simulator]
    done = subprocess.run(
        [*command, "--verilog", files[0], "--picture", files[1]],
        cwd=ROOT / "examples" / "axis_top",
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 dot products equal the golden model, bit for bit")
    verilog, picture = (file.read_text() for file in files)
    assert "module axis_top(" in verilog
    assert "s_axis_b_tlast" in picture


@pytest.mark.slow
def test_a_design_with_a_memory(tmp_path: Path) -> None:
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    shutil.copytree(ROOT / "examples" / "axis_memory", tmp_path / "design")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "run.py", "--simulator", simulator, *arguments],
            cwd=tmp_path / "design",
            check=False,
            capture_output=True,
            text=True,
        )

    done = run("--format", "mxfp4", "--verilog", "design.v")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"24 dot products equal the golden model, bit for bit ({simulator})\n"
    assert "module axis_memory(" in (tmp_path / "design/design.v").read_text()
    source = tmp_path / "design/design.py"
    text = source.read_text()
    source.write_text(text.replace("(left > lane)", "(left > 0)"))  # all bytes of a beat count
    assert source.read_text() != text
    done = run()
    assert done.returncode == 1
    assert re.search(r"result \d+ is ", done.stderr)


@pytest.mark.slow
def test_the_picture_of_handshakes_is_what_the_units_do(tmp_path: Path) -> None:
    kept = ROOT / "docs" / "handshakes.svg"
    drawing = runpy.run_path(str(ROOT / "docs" / "draw_handshakes.py"))
    drawing["main"](tmp_path / "drawn.svg")
    drawn, shown = (
        [line for line in path.read_text().splitlines() if "Matplotlib v" not in line]
        for path in (tmp_path / "drawn.svg", kept)
    )
    assert drawn == shown, "python docs/draw_handshakes.py"


def test_a_testbench_of_ones_own() -> None:
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    command = [sys.executable, "run.py", simulator]
    folder = ROOT / "examples" / "own_testbench"
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 products equal\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sessions_in_the_docs_are_true(page: Path) -> None:
    # A fence right after a session would be read as its output.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(session).failed == 0


class Case(NamedTuple):
    """A case of a file, by how its line starts, and which of its words is changed."""

    file: str
    start: str
    place: int


class Reader:
    """An example in C99 that checks a folder of vectors, compiled."""

    def __init__(self, name: str, folder: Path) -> None:
        flags = ["-x", "c", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
        source = ROOT / "examples" / f"{name}.c"
        self.name, self.program = name, folder / name
        subprocess.run(["g++", *flags, str(source), "-o", str(self.program)], check=True)

    def on(self, folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.program, folder], check=False, capture_output=True, text=True)

    def finds_a_wrong_character(self, vectors: Path, folder: Path, case: Case) -> None:
        """The last character of one word of one case is changed: that case alone must fail."""
        shutil.copytree(vectors, folder, dirs_exist_ok=True)
        lines = (folder / case.file).read_text().splitlines()
        number = next(k for k, line in enumerate(lines) if line.startswith(case.start))
        words = lines[number].split()
        words[case.place] = words[case.place][:-1] + ("1" if words[case.place][-1] == "0" else "0")
        lines[number] = " ".join(words)
        (folder / case.file).write_text("\n".join(lines) + "\n")
        done = self.on(folder)
        assert done.returncode == 1
        assert f"{case.file}:{number + 1}: {words[0]} fails\n" in done.stdout
        assert done.stdout.count(" fails\n") == 1

    def refuses(self, folder: Path, file: str, fields: int) -> None:
        """A folder without the file, and files without cases or with other fields."""
        done = self.on(folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"{self.name}: cannot read {folder}/{file}\n"
        (folder / file).parent.mkdir(exist_ok=True)
        texts = {"# a comment\n": "has no cases", "a b\n": f"does not have {fields} fields"}
        for text, reason in texts.items():
            (folder / file).write_text(text)
            done = self.on(folder)
            assert done.returncode == 2
            assert reason in done.stderr


@pytest.fixture(scope="module")
def check_vectors(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader("check_vectors", tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def check_formats(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader("check_formats", tmp_path_factory.mktemp("c"))


def test_the_c_example_gives_the_vectors(check_vectors: Reader) -> None:
    done = check_vectors.on(ROOT / "vectors")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (ROOT / "docs" / "vectors.md").read_text()
    assert f"$ ./check_vectors vectors\n{done.stdout}```" in page


@pytest.mark.parametrize(
    "case",
    [
        Case("encode.txt", "next_to_the_tie 8 fp32 nearest", 10),
        Case("encode.txt", "worked_block 8 fp16 nearest", 7),
        Case("decode.txt", "dense_codes_exponent_3 ", 8),
        Case("decode.txt", "high_precision_codes_exponent_255 ", 9),
        Case("unpack.txt", "mask_bit_too_few 16 ", 7),
    ],
)
def test_the_c_example_finds_a_wrong_character(
    check_vectors: Reader, tmp_path: Path, case: Case
) -> None:
    check_vectors.finds_a_wrong_character(ROOT / "vectors", tmp_path, case)


def test_the_c_example_refuses_what_it_cannot_read(check_vectors: Reader, tmp_path: Path) -> None:
    check_vectors.refuses(tmp_path, "encode.txt", 12)


def test_the_c_example_gives_the_vectors_of_formats(check_formats: Reader) -> None:
    done = check_formats.on(ROOT / "vectors" / "formats")
    assert done.returncode == 0, done.stdout + done.stderr
    found = done.stdout.splitlines()
    assert [line.split(":")[0] for line in found] == list(NAMES)
    assert all(line.endswith(" dot products, 0 fail") for line in found)
    page = (ROOT / "docs" / "vectors.md").read_text()
    shown = page.split("$ ./check_formats vectors/formats\n")[1].split("```")[0].splitlines()
    assert [line for line in shown if line != "..."] == [*found[:1], *found[-1:]]


@pytest.mark.parametrize(
    "case",
    [
        Case("mxfp4/elements.txt", "number f ", 3),
        Case("fp8_e5m2/elements.txt", "infinity fc ", 3),
        Case("fp8_e4m3fnuz/elements.txt", "nan 80 ", 3),
        Case("nvfp4/scales.txt", "real 1 38 ", 4),
        Case("nvfp4_ue5m3/scales.txt", "real 0 fe ", 4),
        Case("mxfp8_e4m3/scales.txt", "exponent 0 ff ", 4),
        Case("mx9/dot.txt", "random ", 4),
        Case("mxfp8_e5m2/dot.txt", "smallest ", 5),
        Case("uint8/dot.txt", "random ", 1),
        Case("mxfp4/dot.txt", "nan_scale ", 4),
        Case("mxfp8_e5m2/encode.txt", "nan_or_infinite nearest propagate", 5),
        Case("mx6/encode.txt", "next_to_a_midpoint toward_zero", 5),
        Case("nvfp4/encode.txt", "random nearest", 6),
        Case("if4/encode.txt", "random nearest", 6),
    ],
)
def test_the_c_example_finds_a_wrong_character_in_a_format(
    check_formats: Reader, tmp_path: Path, case: Case
) -> None:
    check_formats.finds_a_wrong_character(ROOT / "vectors" / "formats", tmp_path, case)


def test_the_c_example_refuses_folders_without_formats(
    check_formats: Reader, tmp_path: Path
) -> None:
    check_formats.refuses(tmp_path, "mx9/elements.txt", 4)


def test_the_docs_are_filled_in() -> None:
    for page in PAGES:
        assert not re.search(r"@[A-Z]+@", page.read_text()), page
