"""The examples and the code in the docs run and print what the docs say."""

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from catalogue import FIGURES

from axs6.golden.vectors.formats import NAMES

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path) -> None:
    done = subprocess.run([sys.executable, path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for figure in FIGURES.values():
        if figure.commands == (f"python examples/{path.name}",):
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            assert [printed] == figure.stored()["output"], f"make figures ONLY={figure.name}"


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


def test_a_testbench_of_ones_own() -> None:
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    command = [sys.executable, "run.py", simulator]
    folder = ROOT / "examples" / "own_testbench"
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 products equal\n"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_sessions_in_the_docs_are_true(page: Path) -> None:
    # A fence right after a session would be read as its output.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(session).failed == 0


@pytest.fixture(scope="module")
def check_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("check_vectors", tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def check_formats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("check_formats", tmp_path_factory.mktemp("c"))


def compiled(name: str, folder: Path) -> Path:
    flags = ["-x", "c", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
    source = ROOT / "examples" / f"{name}.c"
    subprocess.run(["g++", *flags, str(source), "-o", str(folder / name)], check=True)
    return folder / name


def run_on(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, folder], check=False, capture_output=True, text=True)


def test_the_c_example_gives_the_vectors(check_vectors: Path) -> None:
    done = run_on(check_vectors, ROOT / "vectors")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (ROOT / "docs" / "vectors.md").read_text()
    assert f"$ ./check_vectors vectors\n{done.stdout}```" in page


@pytest.mark.parametrize(
    ("file", "case", "place"),
    [
        ("encode.txt", "next_to_the_tie 8 fp32 nearest", 10),
        ("encode.txt", "worked_block 8 fp16 nearest", 7),
        ("decode.txt", "dense_codes_exponent_3 ", 8),
        ("decode.txt", "high_precision_codes_exponent_255 ", 9),
        ("unpack.txt", "mask_bit_too_few 16 ", 7),
    ],
)
def test_the_c_example_finds_a_wrong_character(
    check_vectors: Path, tmp_path: Path, file: str, case: str, place: int
) -> None:
    shutil.copytree(ROOT / "vectors", tmp_path, dirs_exist_ok=True)
    lines = (tmp_path / file).read_text().splitlines()
    number = next(k for k, line in enumerate(lines) if line.startswith(case))
    words = lines[number].split()
    words[place] = words[place][:-1] + ("1" if words[place][-1] == "0" else "0")
    lines[number] = " ".join(words)
    (tmp_path / file).write_text("\n".join(lines) + "\n")
    done = run_on(check_vectors, tmp_path)
    assert done.returncode == 1
    assert f"{file}:{number + 1}: {words[0]} fails\n" in done.stdout
    assert done.stdout.count(" fails\n") == 1


def test_the_c_example_refuses_what_it_cannot_read(check_vectors: Path, tmp_path: Path) -> None:
    done = run_on(check_vectors, tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"check_vectors: cannot read {tmp_path}/encode.txt\n"
    for text, reason in (("# a comment\n", "has no cases"), ("a b\n", "does not have 12 fields")):
        (tmp_path / "encode.txt").write_text(text)
        done = run_on(check_vectors, tmp_path)
        assert done.returncode == 2
        assert reason in done.stderr


def test_the_c_example_gives_the_vectors_of_formats(check_formats: Path) -> None:
    done = run_on(check_formats, ROOT / "vectors" / "formats")
    assert done.returncode == 0, done.stdout + done.stderr
    found = done.stdout.splitlines()
    assert [line.split(":")[0] for line in found] == list(NAMES)
    assert all(line.endswith(" dot products, 0 fail") for line in found)
    page = (ROOT / "docs" / "vectors.md").read_text()
    shown = page.split("$ ./check_formats vectors/formats\n")[1].split("```")[0].splitlines()
    assert [line for line in shown if line != "..."] == [*found[:1], *found[-1:]]


@pytest.mark.parametrize(
    ("file", "case", "place", "name"),
    [
        ("mxfp4/elements.txt", "number f ", 3, "number"),
        ("fp8_e5m2/elements.txt", "infinity fc ", 3, "infinity"),
        ("nvfp4/scales.txt", "real 1 38 ", 4, "real"),
        ("mxfp8_e4m3/scales.txt", "exponent 0 ff ", 4, "exponent"),
        ("mx9/dot.txt", "random ", 4, "random"),
        ("mxfp8_e5m2/dot.txt", "smallest ", 5, "smallest"),
        ("uint8/dot.txt", "random ", 1, "random"),
        ("mxfp4/dot.txt", "nan_scale ", 4, "nan_scale"),
    ],
)
def test_the_c_example_finds_a_wrong_character_in_a_format(
    check_formats: Path, tmp_path: Path, file: str, case: str, place: int, name: str
) -> None:
    shutil.copytree(ROOT / "vectors" / "formats", tmp_path, dirs_exist_ok=True)
    lines = (tmp_path / file).read_text().splitlines()
    number = next(k for k, line in enumerate(lines) if line.startswith(case))
    words = lines[number].split()
    words[place] = words[place][:-1] + ("1" if words[place][-1] == "0" else "0")
    lines[number] = " ".join(words)
    (tmp_path / file).write_text("\n".join(lines) + "\n")
    done = run_on(check_formats, tmp_path)
    assert done.returncode == 1
    assert f"{file}:{number + 1}: {name} fails\n" in done.stdout
    assert done.stdout.count(" fails\n") == 1


def test_the_c_example_refuses_folders_without_formats(check_formats: Path, tmp_path: Path) -> None:
    done = run_on(check_formats, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"check_formats: cannot read {tmp_path}/mx9/elements.txt\n"
    (tmp_path / "mx9").mkdir()
    for text, reason in (("# a comment\n", "has no cases"), ("a b\n", "does not have 4 fields")):
        (tmp_path / "mx9" / "elements.txt").write_text(text)
        done = run_on(check_formats, tmp_path)
        assert done.returncode == 2
        assert reason in done.stderr


def test_the_docs_are_filled_in() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not re.search(r"@[A-Z]+@", page.read_text()), page
