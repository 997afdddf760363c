"""`axs6 simulate` as a user meets it: arrays from files through the simulated hardware."""

import json
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import axs6
from axs6.commands.simulate_command import rate
from axs6.hw.core.layouts import FLOAT_FIELDS, port_fields
from axs6.hw.registry import UNITS, find

Cli = Callable[..., Any]

QUICK = ("dot", "encoder", "lfsr")
"""Units that the command has in every run: with sums, numbers, and no inputs. The simulator
has all units in tests/sim/test_batch.py."""


@pytest.mark.parametrize(
    ("unit", "engine"),
    [
        *(
            pytest.param(unit, "batch", marks=[pytest.mark.slow] * (unit not in QUICK))
            for unit in UNITS
        ),
        pytest.param(*("lfsr", "cxxrtl"), marks=pytest.mark.slow),
        *(pytest.param(unit, "cxxrtl", marks=pytest.mark.slow) for unit in ("decoder", "dot")),
    ],
)
def test_every_unit_equals_the_golden_model(
    main: Cli, unit: str, engine: str, tmp_path: Path
) -> None:
    # The values of tests/sim/test_batch.py: models are built once.
    small = {"block": 8, **{name: values[-1] for name, values in UNITS[unit].samples.items()}}
    if {"rounding", "random_bits"} <= UNITS[unit].defaults.keys():
        small["rounding"] = "stochastic"
    options = [f"--{name.replace('_', '-')}={value}" for name, value in small.items()]
    parameters = UNITS[unit].parameters(small)
    items = find(unit).random(parameters, np.random.default_rng(0), 200)
    np.savez(tmp_path / "in.npz", **items)  # type: ignore[arg-type]
    files = ("--input", "in.npz", "--output", "out.npz")
    main("simulate", unit, *files, "--engine", engine, *options).succeeded()
    with np.load(tmp_path / "out.npz") as outputs:
        for name, values in UNITS[unit].golden(items, parameters).items():
            found = outputs[name]
            floats = found.dtype == np.float32
            real = name.rpartition(".")[2] in FLOAT_FIELDS and parameters.get("dtype") != "bf16"
            assert floats == real
            assert np.array_equal(found.view(np.uint32) if floats else found, values)


def test_a_tensor_has_one_scale(main: Cli, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    blocks = axs6.encode(x, "int8")
    outer = blocks.scales[0].view(np.float32)
    np.savez(tmp_path / "in.npz", outer=outer, codes=blocks.codes)
    main(
        *("simulate", "decoder", "--format", "int8", "--block", "8"),
        *("-i", "in.npz", "-o", "out.npy"),
    ).succeeded()
    assert np.array_equal(np.load(tmp_path / "out.npy").reshape(x.shape), axs6.decode(blocks))


def test_floats_alone_are_called_values() -> None:
    """The command takes fields of these names for floats of the unit's dtype."""
    for unit in UNITS.values():
        component: Any = unit.build()
        for port in port_fields(component):
            for field in port:
                if field.name.rpartition(".")[2] in FLOAT_FIELDS:
                    assert field.width == 32


@pytest.mark.parametrize(
    "dtype", [np.float32, pytest.param(np.float16, marks=pytest.mark.slow), ml_dtypes.bfloat16]
)
def test_floats_are_encoded_and_decoded(main: Cli, dtype: Any, tmp_path: Path) -> None:
    """Matrices of blocks along the last axis, through both units, each by its own files."""
    x = np.random.default_rng(0).standard_normal((3, 5, 16)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    name = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}[np.dtype(dtype).name]
    outputs = ("-o", "block.exponent=e.npy", "-o", "block.codes=c.npy")
    options = ("--block", "8", "--dtype", name)
    main("simulate", "encoder", "-i", "x.npy", *outputs, *options).succeeded()
    blocks = axs6.encode(x, block=8)
    exponents, codes = (np.load(tmp_path / f"{each}.npy") for each in "ec")
    assert np.array_equal(exponents, blocks.exponents.ravel())
    assert np.array_equal(codes, blocks.codes.reshape(-1, 8))

    np.save(tmp_path / "m.npy", codes.reshape(15, 16))
    inputs = ("-i", "exponent=e.npy", "-i", "codes=m.npy")
    out_dtype, kept = ("bf16", "bfloat16") if name == "bf16" else ("fp32", np.float32)
    options = ("--block", "8", "--dtype", out_dtype)
    main("simulate", "decoder", *inputs, "-o", "y.npy", *options).succeeded()
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == (np.uint16 if name == "bf16" else np.float32)
    assert np.array_equal(y, axs6.decode(blocks, dtype=kept).reshape(-1, 8))


def test_patterns_and_floats_are_the_same(main: Cli, tmp_path: Path) -> None:
    patterns = find("encoder").corners(UNITS["encoder"].parameters({"block": 8}))["values"]
    np.save(tmp_path / "patterns.npy", patterns)
    np.save(tmp_path / "floats.npy", patterns.astype(np.uint32).view(np.float32))
    np.save(tmp_path / "swapped.npy", patterns.astype(np.uint32).view(np.float32).astype(">f4"))
    codes = []
    for name in ("patterns", "floats", "swapped"):
        files = ("-i", f"{name}.npy", "-o", f"block.codes={name}-codes.npy")
        main("simulate", "encoder", *files, "--block", "8").succeeded()
        codes.append(np.load(tmp_path / f"{name}-codes.npy"))
    assert np.array_equal(codes[0], codes[1])
    assert np.array_equal(codes[0], codes[2])


def pairs(folder: Path, count: int = 100, unit: str = "block_dot", **given: Any) -> None:
    parameters = UNITS[unit].parameters({"block": 8, **given})
    items = find(unit).random(parameters, np.random.default_rng(0), count)
    np.savez(folder / "in.npz", **items)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "given", "macs"),
    [
        ("block_dot", {}, 8),
        ("block_dot", {"view": "structure"}, 8),
        ("matmul", {"rows": 1, "columns": 2}, 2 * 8),
    ],
)
def test_json_reports_cycles_and_macs(
    main: Cli, unit: str, given: dict[str, Any], macs: int, tmp_path: Path
) -> None:
    pairs(tmp_path, unit=unit, **given)
    options = [f"--{name}={value}" for name, value in {"block": 8, **given}.items()]
    done = main("simulate", unit, "-i", "in.npz", "--json", "-", "--threads", "2", *options)
    figures = json.loads(done.succeeded())
    assert figures["unit"] == unit
    assert figures["engine"] == "batch"
    assert figures["parameters"]["view"] == given.get("view", "behaviour")
    assert figures["items"] == 100
    assert figures["cycles"] >= 100
    assert figures["macs_per_second"] * figures["seconds"] == pytest.approx(macs * 100)
    assert figures["cycles_per_second"] * figures["seconds"] == pytest.approx(figures["cycles"])
    assert " MAC/s" in done.stderr


def test_a_waveform_of_a_window(main: Cli, tmp_path: Path) -> None:
    pairs(tmp_path)
    options = ("--block", "8", "--vcd", "wave.vcd", "--window", "10:12", "--stages", "1")
    printed = main("simulate", "block_dot", "-i", "in.npz", *options).succeeded()
    assert "cxxrtl" in printed
    assert "wrote wave.vcd" in printed
    text = (tmp_path / "wave.vcd").read_text()
    assert "$scope module axs6_block_dot $end" in text
    times = [line for line in text.splitlines() if line.startswith("#")]
    assert times == ["#100", "#105", "#110", "#115", "#120"]


def test_without_an_output_the_window_ends_the_run(main: Cli, tmp_path: Path) -> None:
    pairs(tmp_path)
    options = ("--block", "8", "--vcd", "wave.vcd", "--window", "10:12", "--stages", "1")
    command = ("simulate", "block_dot", "-i", "in.npz", *options, "--json", "-")
    figures = json.loads(main(*command).succeeded())
    assert (figures["cycles"], figures["outputs"], figures["macs_per_second"]) == (12, 11, None)
    window = (tmp_path / "wave.vcd").read_bytes()
    figures = json.loads(main(*command, "-o", "out.npz").succeeded())
    assert (figures["cycles"], figures["outputs"]) == (101, 100)
    assert (tmp_path / "wave.vcd").read_bytes() == window


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL],
)
def test_a_signal_ends_a_compiled_loop(number: signal.Signals, tmp_path: Path, main: Cli) -> None:
    pairs(tmp_path, 200_000)
    options = ["--block", "8", "--vcd", "wave.vcd", "--window", "10:1000000", "--stages", "1"]
    command = ["simulate", "block_dot", "-i", "in.npz", *options]
    # A shell that runs the suite in its background has it ignore interrupts, children included.
    started = ["env", "--default-signal=INT", sys.executable, "-m", "axs6", *command]
    with subprocess.Popen(
        started, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        while child.poll() is None and not any(
            file.stat().st_size for file in tmp_path.glob(".axs6-*")
        ):
            time.sleep(0.05)
        child.send_signal(number)
        printed, _ = child.communicate(timeout=30)
    assert set(printed.splitlines()) <= {
        b"compiling a model for the CXXRTL simulator",
        b"simulating",
    }
    assert child.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "in.npz")
    assert len(left) == (number == signal.SIGKILL)
    pairs(tmp_path)
    main(*command, "--window", "10:12").succeeded()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "wave.vcd"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.5e9, ("2,500.00", "M cycles/s")),
        (12_345.0, ("12.35", "k cycles/s")),
        (42.0, ("42.00", "cycles/s")),
    ],
)
def test_speeds_have_a_unit_that_fits(value: float, shown: tuple[str, str]) -> None:
    assert rate(value, "cycles/s", 2) == shown


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["divider", "-i", "x.npy"], "unit must be one of block_dot, "),
        (["encoder"], "Missing option '--input'"),
        (["encoder", "-i", "none.npy"], "cannot read none.npy: No such file or directory"),
        (["encoder", "-i", "."], "cannot read .: Is a directory"),
        (["encoder", "-i", "text.npy"], "text.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "empty.npy"], "empty.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "objects.npy"], "objects.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "cut.npy"], "cut.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "unclosed.npy"], "unclosed.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "vast.npy"], "vast.npy is not a NumPy file of numbers"),
        (["encoder", "-i", "cut.npz"], "cut.npz is not a NumPy file of numbers"),
        (["encoder", "-i", "raw.npz"], "raw.npz: its member 'values' is not an array"),
        (["encoder", "-i", "headless.npz"], "headless.npz: its member 'values' is not an array"),
        (["encoder", "-i", "x.npy", "-i", "values=x.npy"], "input 'values' is given twice"),
        (["encoder", "-i", "value=x.npy"], "there is no input 'value'; the inputs are values"),
        (["encoder", "-i", "values=in.npz"], "give it without 'values'"),
        (["encoder", "-i", "in.npz"], "there is no input 'a.exponent'; the inputs are values"),
        (["dot", "-i", "in.npz", "--block", "8"], "input 'last' is missing"),
        (["dot", "-i", "x.npy"], "the inputs are a.exponent, a.codes, b.exponent, b.codes, last:"),
        (["encoder", "-i", "odd.npy"], "a multiple of the block 32, not shape (4, 50)"),
        (["encoder", "-i", "double.npy"], "must be float32, or its bit patterns in uint32, not f"),
        (["encoder", "-i", "x.npy", "--dtype", "bf16"], "must be bfloat16, or its bit patterns"),
        (["encoder", "-i", "x.npy", "--dtype", "fp16"], "must be float16, or its bit patterns"),
        (
            ["decoder", "-i", "codes=odd.npy", "-i", "exponent=odd.npy"],
            "a multiple of the block 32",
        ),
        (["decoder", "-i", "codes=x.npy", "-i", "exponent=x.npy"], "must have an integer dtype"),
        (["encoder", "-i", "x.npy", "-o", "y.npy"], "the outputs are block.exponent, block.codes"),
        (["encoder", "-i", "x.npy", "-o", "y=y.npy"], "there is no output 'y'; the outputs are"),
        (["encoder", "-i", "x.npy", "-o", "y.txt"], "output must be FILE.npz or FIELD=FILE.npy"),
        (["encoder", "-i", "x.npy", "-o", "invalid=y.npz"], "output must be FILE.npz or FIELD="),
        (["encoder", "-i", "x.npy", "-o", "y.npz", "-o", "y.npz"], "output 'y.npz' is given twice"),
        (["encoder", "-i", "x.npy", "-o", "/proc/x/y.npz"], "cannot write to /proc/x/y.npz"),
        (["encoder", "-i", "x.npy", "--vcd", "/proc/x/y.vcd"], "cannot write to /proc/x/y.vcd"),
        (["encoder", "-i", "x.npy", "--json", "/proc/x/y"], "cannot write to /proc/x/y"),
        (["encoder", "-i", "x.npy", "--engine", "vcs"], "engine must be one of batch, cxxrtl"),
        (["encoder", "-i", "x.npy", "--block", "9"], "block must be one of 8, 16, 32"),
        (["encoder", "-i", "x.npy", "--rows", "2"], "encoder has no parameter 'rows'"),
        (
            ["encoder", "-i", "x.npy", "--threads", "0"],
            "threads must be an integer of at least 1, not 0",
        ),
        (
            ["encoder", "-i", "x.npy", "--random-bits", "8"],
            "random_bits is for rounding stochastic, not nearest",
        ),
        (["encoder", "-i", "x.npy", "--window", "0:9"], "--window needs --vcd"),
        (
            ["encoder", "-i", "x.npy", "--vcd", "y.vcd", "--engine", "batch"],
            "--vcd needs --engine cxxrtl, not batch",
        ),
        (
            ["encoder", "-i", "x.npy", "--vcd", "y.vcd", "--threads", "2"],
            "--threads needs --engine batch, not cxxrtl",
        ),
        (
            ["encoder", "-i", "x.npy", "--vcd", "y.vcd", "--window", "9:9"],
            "window must be FIRST:END, with FIRST below END, not '9:9'",
        ),
        (
            ["encoder", "-i", "x.npy", "--vcd", "y.vcd", "--window", "9"],
            "window must be FIRST:END, with FIRST below END, not '9'",
        ),
        (
            [
                *("block_dot", "--block", "8", "--stages", "1", "-i", "in.npz", "-o", "o.npz"),
                *("--vcd", "y.vcd", "--window", "101:200"),
            ],
            "window (101, 200) begins after the run's 101 cycles",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    main: Cli, arguments: list[str], message: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 64), np.float32))
    np.save(tmp_path / "odd.npy", np.ones((4, 50), np.float32))
    np.save(tmp_path / "double.npy", np.ones((4, 64)))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("1 2 3\n")
    (tmp_path / "empty.npy").write_bytes(b"")
    for name, member in (("raw.npz", "values"), ("headless.npz", "values.npy")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, b"no header")
    (tmp_path / "unclosed.npy").write_bytes(b"\x93NUMPY\1\0\1\0{")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}" % (10**30)
    vast = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header
    (tmp_path / "vast.npy").write_bytes(vast)
    pairs(tmp_path)
    for name, whole in (("cut.npy", "x.npy"), ("cut.npz", "in.npz")):
        (tmp_path / name).write_bytes((tmp_path / whole).read_bytes()[:-99])
    before = files_in(tmp_path)
    assert message in main("simulate", *arguments).refused()
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("engine", ["batch", "cxxrtl"])
def test_a_missing_compiler_is_named(cli: Cli, engine: str, tmp_path: Path) -> None:
    pairs(tmp_path)
    files = ("--block", "8", "-i", "in.npz", "-o", "out.npz", "--engine", engine)
    needed_by = {"batch": "the batch simulator", "cxxrtl": "the CXXRTL simulator"}[engine]
    done = cli("simulate", "block_dot", *files, PATH=str(tmp_path))
    assert done.refused() == f"{needed_by} needs g++ on PATH"
    assert files_in(tmp_path) == ["in.npz"]


def test_values_that_do_not_fit_are_named(main: Cli, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", exponent=[256], codes=np.zeros((1, 32), np.uint8))
    done = main("simulate", "decoder", "-i", "in.npz")
    assert done.refused() == "input 'exponent' must be in 0 to 255"
    np.savez(tmp_path / "in.npz", exponent=[1, 2], codes=np.zeros((1, 32), np.uint8))
    done = main("simulate", "decoder", "-i", "in.npz")
    assert done.refused() == "input 'codes' must have shape (2, 32), not (1, 32)"
