"""The command line as a user meets it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from axs6.cli import commands
from axs6.golden.check.validate import CHECKS
from axs6.hw.registry import ALL_UNITS
from axs6.install import install_command

Cli = Callable[..., Any]

SMALL = ("encoder", "--block", "8", "--view", "behaviour")
BUILT = ("block_dot", "--block", "8", "--stages", "0")
"""A simulation that several tests here need: it is built once."""


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_with_an_example(main: Cli, command: str) -> None:
    done = main(command, "--help")
    assert done.returncode == 0
    assert f"Example: axs6 {command}" in " ".join(done.stdout.split())


@pytest.mark.parametrize("command", ["", *commands()])
def test_flags_have_no_type_in_help(main: Cli, command: str) -> None:
    printed = main(*command.split(), "--help").succeeded()
    assert "--help" in printed
    assert "<bool>" not in printed


def test_the_version_is_that_of_the_package(main: Cli) -> None:
    assert main("--version").succeeded() == f"axs6 {version('axs6')}\n"


@pytest.mark.parametrize("arguments", [[], ["study"]])
def test_without_a_command_there_is_help_and_no_stray_line(main: Cli, arguments: list[str]) -> None:
    done = main(*arguments)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Commands" in done.stdout


@pytest.mark.parametrize("columns", [20, 80])
def test_tables_are_not_cut_on_a_narrow_terminal(main: Cli, columns: int) -> None:
    printed = main("list", columns=columns).succeeded()
    assert "rounding=nearest (nearest|toward_zero|stochastic)" in printed
    assert all(unit.summary in printed for unit in ALL_UNITS.values())


def test_list_shows_every_unit(main: Cli) -> None:
    done = main("list", "--json", "-")
    units = {each["unit"]: each for each in json.loads(done.stdout)}
    assert set(units) == set(ALL_UNITS)
    assert units["dot"]["parameters"] == ALL_UNITS["dot"].defaults


def test_list_says_which_units_take_a_format(main: Cli) -> None:
    done = main("list", "--format", "uint8", "--json", "-")
    units = {each["unit"]: each for each in json.loads(done.stdout)}
    assert units["decoder"]["parameters"]["format"] == "uint8"
    assert units["decoder"]["choices"]["block"] == [8, 16, 32, 64, 128]
    assert units["expander"]["refused"] == "expander takes only axs6, not uint8"
    assert "parameters" not in units["expander"]
    assert "refused" not in units["lfsr"]
    wrong = main("list", "--format", "uint9")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert main("list", "--format", "mx9", "--formats").returncode == 2


def test_generate_writes_verilog_and_manifest(main: Cli, tmp_path: Path) -> None:
    done = main(
        *("generate", "encoder", "--block", "8", "--dtype", "bf16", "--stages", "2"),
        *("-o", "new/rtl"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "new/rtl").iterdir()) == [
        "axs6_encoder.core",
        "axs6_encoder.json",
        "axs6_encoder.v",
        "axs6_encoder.vh",
        "axs6_encoder.vhd",
        "axs6_encoder_if.sv",
        "axs6_encoder_pkg.sv",
        "axs6_encoder_sva.sv",
    ]
    manifest = json.loads((tmp_path / "new/rtl/axs6_encoder.json").read_text())
    assert manifest["latency"] == 2
    assert manifest["streams"][0]["width"] == 8 * 16
    assert "module axs6_encoder(" in (tmp_path / "new/rtl/axs6_encoder.v").read_text()


LFSR = ("generate", "lfsr", "--block", "8", "-o", "rtl")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--stages", "1"), "rtl/axs6_lfsr.v exists and is another design, with stages=0: give"),
        (("--ports", "fields"), "is another design, with ports=packed: give --name, or another"),
        (
            ("--random-bits", "8", "--lfsr-seed", "7"),
            "is another design, with random_bits=16, lfsr_seed=2654435769: give --name, or",
        ),
    ],
    ids=["stages", "ports", "two"],
)
def test_generate_keeps_another_design(
    main: Cli, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    assert main(*LFSR).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "rtl").iterdir()}
    assert said in main(*LFSR, *more).refused()
    assert before == {path: path.read_bytes() for path in (tmp_path / "rtl").iterdir()}
    assert main(*LFSR).returncode == 0
    assert main(*LFSR, *more, "--name", "other").returncode == 0


@pytest.mark.parametrize("manifest", [None, "", "[]", "{}", '{"streams": 3}'])
def test_generate_keeps_a_file_that_it_did_not_write(
    main: Cli, tmp_path: Path, manifest: str | None
) -> None:
    (tmp_path / "rtl").mkdir()
    mine = tmp_path / "rtl" / "axs6_lfsr.v"
    mine.write_text("module mine; endmodule")
    if manifest is not None:
        mine.with_suffix(".json").write_text(manifest)
    assert "axs6_lfsr.v exists without a manifest" in main(*LFSR).refused()
    assert mine.read_text() == "module mine; endmodule"


def test_generate_says_what_packets_are_where_beats_take_turns(main: Cli) -> None:
    given = ("generate", "axis_dot", "--block", "8", "--view", "behaviour", "-o", "rtl")
    said = "packets that are whole vectors, one after the other, need --interleave 1"
    assert said in main(*given, "--interleave", "2", "--name", "two").stderr
    assert said not in main(*given).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "divider", "-o", "x"], "unit must be one of block_dot, "),
        (["generate", "dot", "--block", "9", "-o", "x"], "block must be one of 8, 16, 32"),
        (["generate", "dot", "--stages", "99", "-o", "x"], "stages must be an integer from 0 to"),
        (["generate", "dot", "--dtype", "fp32", "-o", "x"], "dot has no parameter 'dtype'"),
        (["generate", "encoder", "--dtype", "fp8", "-o", "x"], "dtype must be one of fp32,"),
        (["generate", "dot", "--blocksize", "8", "-o", "x"], "No such option: --blocksize"),
        (["generate", "dot", "--stages", "two", "-o", "x"], "Invalid value for '--stages'"),
        (["generate", "dot"], "Missing option '-o' / '--output'"),
        (["generate", "dott"], "unit must be one of block_dot, "),
        (["simulate", "dott"], "unit must be one of block_dot, "),
        (
            ["area", "dot", "--target", "ice40,ecp5"],
            "target must be one target, not 'ice40,ecp5'; for several: "
            '--sweep "target=ice40,ecp5"',
        ),
        (
            ["generate", "encoder", "--random-bits", "8", "-o", "x"],
            "random_bits is for rounding stochastic, not nearest",
        ),
        (
            ["area", "encoder", "--random-bits", "8", "--rounding", "toward_zero"],
            "random_bits is for rounding stochastic, not toward_zero",
        ),
        (
            ["area", "encoder", "--sweep", "random_bits=4,8"],
            "random_bits is for rounding stochastic, not nearest",
        ),
        (
            ["regress", "encoder", "--random-bits", "8"],
            "random_bits is for rounding stochastic, not nearest",
        ),
        (["multiply"], "No such command 'multiply'"),
        (["regress", "dot", "--seed", "-1"], "seed must be an integer of at least 0, not -1"),
        (["regress", "dot", "decoder", "--stages", "5"], "stages must be an integer from 0 to 4"),
        (["regress", "dot", "--junit", "/proc/x/report.xml"], "cannot write to /proc/x/report.xml"),
        (["validate", "--seed", "-1"], "seed must be an integer of at least 0, not -1"),
        (["area", "dot", "--timeout", "nan"], "timeout must be more than 0 seconds, not nan"),
        (["regress", "divider"], "unit must be one of block_dot, "),
        (
            ["generate", "dot", "--format", "mxfp4,mxfp8_e4m3", "-o", "x"],
            "--format takes one format here, or a pair as mxfp4xmxfp8_e4m3, not mxfp4, mxfp8_e4m3",
        ),
        (
            ["list", "--format", "mx9", "--format", "mx6"],
            "--format takes one format here, or a pair as mx9xmx6, not mx9, mx6",
        ),
        (
            ["encode", "a.npy", "b.safetensors", "--format", "mx9,mx6"],
            "--format takes one format here, not mx9, mx6",
        ),
        (
            ["regress", "encoder", "--format", "mx9xmx6"],
            "format must be one block format, not the pair 'mx9xmx6'",
        ),
        (["regress", "dot", "--simulator", "vcs"], "simulator must be one of verilator, icarus"),
        (["regress", "dot", "--test", "rate"], "test must be one of corners, full_rate, random_st"),
        (["regress", "dot", "--items", "0"], "items must be an integer of at least 1, not 0"),
        (["validate", "--samples", "0"], "samples must be an integer of at least 1, not 0"),
        (["validate", "--share", "1/64"], "--share needs --exhaustive"),
        (["validate", "--only", "division"], "--only needs --exhaustive"),
        (["validate", "--state", "state.json"], "--state needs --exhaustive"),
        (["validate", "--exhaustive", "--samples", "9"], "--samples does not go with --exhaustive"),
        (["validate", "--exhaustive", "--jobs", "2"], "--jobs does not go with --exhaustive"),
        (["validate", "--jobs", "0"], "jobs must be an integer of at least 1, not 0"),
        (["validate", "--exhaustive", "--format", "mx9"], "--format does not go with --exhaustive"),
        (
            ["validate", "--format", "mx7"],
            "'mx7' is no block format: a name, or an element such as",
        ),
        (["validate", "--exhaustive", "--share", "3/2"], "share must be N/M with 1 <= N <= M"),
        (["validate", "--exhaustive", "--only", "sqrt"], "only must be part of one of decoder"),
        (
            ["validate", "--exhaustive", "--seed", "-1"],
            "seed must be an integer of at least 0, not -1",
        ),
        (["validate", "--exhaustive", "--state", "/proc/x/state"], "cannot write to /proc/x/state"),
        (["area", "dot", "--target", "asic"], "target must be one of"),
        (["area", "dot", "--liberty", "no.lib"], "no.lib"),
        (["area", "dot", "--sweep", "stages=0.4"], "sweep: stages must be integers and ranges"),
        (["area", "dot", "--sweep", "speed=1"], "sweep: dot has no parameter 'speed'"),
        (["area", "dot", "--sweep", "block=8", "--block", "8"], "block is swept and also given"),
        (["area", "dot", "--jobs", "0"], "jobs must be an integer of at least 1, not 0"),
        (["area", "dot", "--scheduler", "host"], "scheduler must be an address such as"),
        (["area", "dot", "--html", "/proc/x/page.html"], "cannot write to /proc/x/page.html"),
        (["area", "dot", "--markdown", "/proc/x/page.md"], "cannot write to /proc/x/page.md"),
        (
            ["area", "dot", "--optimise", "power"],
            "optimise must be one of area, speed, not 'power'",
        ),
        (["area", "dot", "--adder-cells"], "adder cells need a cell library, but target generic"),
        (["area", "dot", "--target", "xc7", "--fmax"], "Fmax needs an open place and route, but"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    main: Cli, arguments: list[str], message: str, tmp_path: Path
) -> None:
    assert message in main(*arguments).refused()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(main: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    line = main("generate", "block_dot", "--block", "8", "-o", "file/rtl").refused()
    assert line == "cannot write to file/rtl: Not a directory"
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("tool", ["g++", "perl", "make"])
def test_a_missing_tool_is_named(cli: Cli, tool: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for each in {"g++", "perl", "make", "sh"} - {tool}:
        found = shutil.which(each)
        assert found is not None
        (programs / each).symlink_to(found)
    done = cli("regress", "block_dot", "--block", "8", PATH=str(programs))
    assert done.refused() == f"verilator needs {tool} on PATH"


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["list"], "amaranth", "hw"),
        (["area", "lfsr", "--html", "page.html"], "jinja2", "synth"),
        (["info", "x.safetensors"], "safetensors", "files"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    cli: Cli, arguments: list[str], package: str, extra: str
) -> None:
    done = cli(*arguments, before=f"import sys; sys.modules['{package}'] = None")
    assert done.refused() == f"the package {package} is missing: {install_command(extra)}"


def test_icarus_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    done = cli("regress", "dot", "--simulator", "icarus", PATH=str(tmp_path))
    assert done.refused() == "icarus needs iverilog and vvp on PATH"


def test_a_cache_that_cannot_be_written_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = cli("regress", *BUILT, AXS6_CACHE=str(tmp_path / "file"))
    assert done.refused().startswith(f"cannot write to the cache {tmp_path / 'file'}")


def test_a_file_that_cannot_be_replaced_leaves_the_others_alone(main: Cli, tmp_path: Path) -> None:
    (tmp_path / "rtl/axs6_dot.json").mkdir(parents=True)
    line = main("generate", "dot", "--block", "8", "-o", "rtl").refused()
    assert line == "cannot write to rtl/axs6_dot.json: Is a directory"
    assert [path.name for path in (tmp_path / "rtl").iterdir()] == ["axs6_dot.json"]


def test_waves_that_cannot_be_written_are_refused_before_the_run(main: Cli, tmp_path: Path) -> None:
    (tmp_path / "waves").write_text("kept")
    done = main("regress", *BUILT, "--waves")
    assert done.refused() == "cannot write to waves: File exists"
    assert (tmp_path / "waves").read_text() == "kept"


def test_an_enumeration_goes_on_from_its_state(main: Cli, tmp_path: Path) -> None:
    arguments = ("validate", "--exhaustive", "--only", "products-mx4", "--state", "state.json")
    first = main(*arguments, "--json", "-")
    assert first.returncode == 0, first.stderr
    (outcome,) = json.loads(first.stdout)
    assert (outcome["space"], outcome["compared"]) == ("products-mx4", 8 * 8 * 16)
    assert "pass products-mx4: 1,024 cases equal" in first.stderr
    again = main(*arguments)
    assert "1,024 of them in earlier runs" in again.stdout
    (tmp_path / "state.json").write_text("{}")
    assert "is not a state of axs6 validate --exhaustive" in main(*arguments).refused()


@pytest.mark.slow
def test_an_interrupted_enumeration_goes_on(cli: Cli, tmp_path: Path) -> None:
    arguments = ("validate", "--exhaustive", "--only", "reciprocal", "--share", "1/64")
    arguments += ("--state", "state.json")
    # A shell that runs the suite in its background has it ignore interrupts, children included.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "axs6", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not (tmp_path / "state.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    done = cli(*arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)
    assert min(outcome["earlier"], outcome["compared"]) > 0
    assert outcome["earlier"] + outcome["compared"] == 4 * 2**23


def test_json_goes_through_links_and_into_pipes(main: Cli, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target.json")
    assert main("list", "--json", "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert len(json.loads((tmp_path / "target.json").read_text())) == len(ALL_UNITS)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE) as reader:
        assert main("list", "--json", "pipe").returncode == 0
        text, _ = reader.communicate(timeout=60)
    assert len(json.loads(text)) == len(ALL_UNITS)
    assert (tmp_path / "pipe").is_fifo()


REGISTER = ("lfsr", "--block", "8", "--random-bits", "2", "--stages", "0", "--items", "50")
QUICK = () if shutil.which("iverilog") is None else ("--simulator", "icarus")
"""What builds a small unit sooner than Verilator."""

ANOTHER_SEED = """
from dataclasses import replace
import axs6.sim.regress as r
right = r.generate
def generate(unit, **parameters):
    wrong = right(unit, **{**parameters, "lfsr_seed": 1})
    return replace(right(unit, **parameters), verilog=wrong.verilog)
r.generate = generate
"""

WITHOUT_TESTS = """
import axs6.sim.regress as r
r.regress.__kwdefaults__["test_module"] = "axs6.sim.bench.checker"
"""

WRONG_ADDITION = """
import functools
import axs6.golden.check.validate as v
names = [name for name in v.CHECKS if "addition" in name]
v.validate = functools.partial(v.validate, model=v.Model(add=lambda a, b: a | b), names=names)
"""


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (ANOTHER_SEED, ["regress", *REGISTER, *QUICK], "the golden model gives"),
        pytest.param(
            *(WITHOUT_TESTS, ["regress", *REGISTER, *QUICK], "the simulator left no results file"),
            marks=pytest.mark.slow,
        ),
        (WRONG_ADDITION, ["validate", "--samples", "1"], "fp32 addition of"),
    ],
    ids=["wrong unit", "no tests", "wrong model"],
)
def test_a_difference_exits_with_1(cli: Cli, script: str, arguments: list[str], said: str) -> None:
    done = cli(*arguments, before=script)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


def test_a_signal_ends_the_simulation_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "axs6", "regress", *BUILT, "--items", "3000000"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, cwd=tmp_path) as child:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("axs6-regress-*/run.log")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        child.terminate()
        assert child.wait(timeout=60) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_regress_reports_json_and_junit(main: Cli, tmp_path: Path) -> None:
    done = main(
        *("regress", *BUILT, "--items", "100"),
        *("--seed", "3", "--junit", "report.xml", "--json", "-"),
    )
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)
    assert outcome["passed"]
    assert outcome["seed"] == 3
    assert outcome["items"] > 100
    assert "1 passed, 0 failed" in done.stderr
    suite = ET.parse(tmp_path / "report.xml").getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "0"


def cut(check: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The first comparisons of a check."""
    return lambda *given: islice(check(*given), 20)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_validate_reports_every_check(
    main: Cli, tmp_path: Path, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:  # each check as a whole is in tests/golden/check
        for name, check in CHECKS.items():
            monkeypatch.setitem(CHECKS, name, cut(check))
    done = main("validate", "--samples", "1", "--seed", "3", "--json", "figures.json")
    assert done.returncode == 0, done.stderr
    checks = json.loads((tmp_path / "figures.json").read_text())
    assert [check["name"] for check in checks] == list(CHECKS)
    assert sum(check["mismatches"] for check in checks) == 0
    assert min(check["cases"] for check in checks) > 0
    total = sum(check["cases"] for check in checks)
    assert f"{total:,} cases compared, 0 differ" in done.stdout


@pytest.mark.slow
def test_validate_takes_formats(main: Cli) -> None:
    done = main("validate", "--samples", "1", "--format", "e2m1fn_e8m0_t1,int4_float32_t0")
    *lines, total = done.succeeded().splitlines()
    checks = [f"format {x}" for x in ("e2m1fn_e8m0_t1", "int4_float32_t0")]
    names = [f"pass {x}{y}: " for x in checks for y in ("", ": dot products")]
    assert [line.startswith(name) for line, name in zip(lines, names, strict=True)] == [True] * 4
    assert "0 differ" in total


@pytest.mark.parametrize(
    "target",
    [
        "sky130",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("generic", "ice40", "ecp5", "xc7")),
    ],
)
def test_area_reports_json(main: Cli, target: str) -> None:
    done = main(
        *("area", "block_dot", "--block", "8", "--stages", "1"),
        *("--target", target, "--json", "-"),
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert report["target"] == target
    settings = {"block": 8, "stages": 1, "view": "structure", "format": "axs6"}
    assert report["parameters"] == settings
    # 8 products of 10 bits make a sum of 14, the exponents one of 9, and there is `valid`.
    assert report["total"]["figures"]["flip_flops"] == 14 + 9 + 1
    assert "axs6_block_dot" in done.stderr


def but_steps(errors: str) -> list[str]:
    """Lines other than those of the steps of a sweep."""
    steps = ("writing the Verilog of ", "measured block_dot ", "synthesising block_dot ")
    return [line for line in errors.splitlines() if not line.startswith(steps)]


def test_area_sweep_goes_on_past_what_is_missing(main: Cli, tmp_path: Path) -> None:
    small = ("--block", "8", "--format", "mx4")
    arguments = ("area", "block_dot", *small, "--sweep", "stages=0,1,99")
    files = ("--html", "page.html", "--markdown", "new/page.md", "--json", "figures.json")
    first, again = (main(*arguments, *files) for _ in range(2))
    assert (first.returncode, but_steps(first.stderr)) == (1, [])
    lines = first.stdout.splitlines()
    assert len([line for line in lines if line.startswith("missing block_dot stages=99: ")]) == 1
    assert "\x1b" not in first.stdout
    assert "3 points, 2 measured earlier, 1 missing" in again.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [point["parameters"]["stages"] for point in figures["points"]] == [0, 1, 99]
    assert figures["missing"] == 1
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert "new/page.md" in (tmp_path / "page.html").read_text()
    pictures = [path for path in (tmp_path / "new").iterdir() if path.suffix == ".svg"]
    assert f"wrote new/page.md with {len(pictures)} SVG beside it" in lines
    assert pictures


def test_a_complete_area_sweep_is_a_success(main: Cli, tmp_path: Path) -> None:
    small = ("--block", "8", "--format", "mx4")
    done = main("area", "block_dot", *small, "--sweep", "stages=0..1")
    assert (done.returncode, but_steps(done.stderr)) == (0, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_area_for_speed_with_adder_cells(main: Cli, tmp_path: Path) -> None:
    done = main(
        *("area", "block_dot", "--block", "8", "--format", "mx4", "--stages", "2"),
        *("--target", "sky130", "--optimise", "speed", "--adder-cells", "--json", "report.json"),
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads((tmp_path / "report.json").read_text())
    assert (report["optimise"], report["adder_cells"]) == ("speed", True)
    assert report["timing"]["fmax_mhz"] == pytest.approx(1e6 / report["timing"]["delay_ps"], 1e-4)
    assert "for speed, adder cells" in done.stdout
    assert "timing: linear model of the compact sky130 library" in done.stdout


SMALL_DEMO = """
import axs6.commands.demo_command as command
command.BLOCK, command.TILE = 8, {"rows": 1, "columns": 1}
command.MEASURED = ("block_dot",)
"""

WRONG_PRODUCT = """
import axs6
import axs6.demo as d
right = axs6.matmul
d.matmul = lambda a, b: -right(a, b)
d.ITERATIONS = 1
"""


def run_demo(cli: Cli, folder: Path, before: str, measured: tuple[str, ...]) -> str:
    """What the demo prints, its figures checked."""
    done = cli("demo", "-o", "out", before=before)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((folder / "out/demo.json").read_text())
    assert figures["outputs_equal"]
    assert set(figures["bits_different"].values()) == {0}
    assert min(figures["bits_compared"].values()) > 100_000
    accuracy = figures["accuracy"]
    assert accuracy["axs6_rtl"] == accuracy["axs6_golden"] > 0.9
    assert set(figures["area"]) == set(measured)
    names = {path.name for path in (folder / "out").iterdir()}
    expected = {f"axs6_{unit}.{kind}" for unit in (*measured, "matmul") for kind in ("v", "json")}
    assert expected | {"demo.json"} <= names
    return str(done.stdout)


def test_demo_equals_the_golden_model_on_every_bit(cli: Cli, tmp_path: Path) -> None:
    assert "accuracy: FP32 9" in run_demo(cli, tmp_path, SMALL_DEMO, ("block_dot",))
    wrong = cli("demo", "-o", "out", before=SMALL_DEMO + WRONG_PRODUCT)
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "matmul" in wrong.stdout


@pytest.mark.slow  # its blocks of 32 take most of a minute to build and synthesise
def test_demo_prints_what_the_docs_show(cli: Cli, tmp_path: Path) -> None:
    printed = run_demo(cli, tmp_path, "", ("encoder", "decoder", "dot"))
    shown = printed[printed.index("unit     cycles") : printed.index("wrote")]
    lines = [line.rstrip() for line in shown.splitlines()]
    assert "\n".join(lines) in (Path(__file__).parents[2] / "docs" / "install.md").read_text()
