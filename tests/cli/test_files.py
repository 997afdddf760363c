"""`axs6 encode`, `decode` and `info` as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import axs6

Cli = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "two.npz", weight=x, bias=x[0], steps=np.arange(3))
    return tmp_path


def test_there_and_back(cli: Cli, folder: Path) -> None:
    options = ("--mode", "auto", "--block", "16", "--exclude", "b*", "--json", "-")
    done = cli("encode", "two.npz", "packed.safetensors", *options)
    assert done.returncode == 0, done.stderr
    rows = {row["tensor"]: row for row in json.loads(done.stdout)}
    assert "wrote packed.safetensors" in done.stderr
    assert rows["bias"]["qsnr_db"] is None
    x = np.load(folder / "x.npy")
    blocks = axs6.encode(x, block=16, mode="auto")
    assert rows["weight"]["bytes_after"] == len(axs6.pack(blocks))
    error = axs6.decode(blocks, np.float64) - x
    qsnr = 10 * np.log10((x.astype(np.float64) ** 2).sum() / (error**2).sum())
    assert rows["weight"]["qsnr_db"] == pytest.approx(qsnr)

    done = cli("info", "packed.safetensors", "--json", "info.json")
    assert done.returncode == 0, done.stderr
    assert "all valid" in done.stdout
    found = {each["name"]: each for each in json.loads((folder / "info.json").read_text())}
    assert sum(found["weight"]["modes"].values()) == blocks.modes.size

    cli("encode", "x.npy", "x.safetensors").succeeded()
    done = cli("decode", "x.safetensors", "y.npy")
    assert (done.returncode, done.stdout) == (0, "wrote y.npy: 1 tensors\n")
    assert np.array_equal(np.load(folder / "y.npy"), axs6.decode(axs6.encode(x)))


def test_any_format(main: Cli, folder: Path) -> None:
    x = np.load(folder / "x.npy")
    for options, name in (
        (("--format", "mxfp4", "--rule", "rceil"), "mxfp4-rceil"),
        (("--format", "mx9", "--block", "32"), "mx9_t32"),
        (("--format", "nvfp4"), "nvfp4"),
        (("--format", "nvfp4", "--scale", "four-over-six"), "nvfp4_four-over-six"),
        (("--format", "int8_float32_t0"), "int8_float32_t0"),
    ):
        main("encode", "x.npy", "x.safetensors", *options).succeeded()
        shown = main("info", "x.safetensors", "--json", "info.json").succeeded()
        blocks = axs6.encode(x, name)
        assert f"{name}, nearest, axis -1" in shown
        assert f"{blocks.modes.size} blocks, all valid" in shown
        (found,) = json.loads((folder / "info.json").read_text())
        assert found["encoded"]["format"] == str(blocks.format)
        main("decode", "x.safetensors", "y.npy").succeeded()
        assert np.array_equal(np.load(folder / "y.npy"), axs6.decode(blocks))


def test_nan_and_infinities(main: Cli, folder: Path) -> None:
    x = np.load(folder / "x.npy")
    x[0, :2] = np.nan, -np.inf
    np.save(folder / "nan.npy", x)
    arguments = ("encode", "nan.npy", "z.safetensors", "--format", "mxfp4", "--nonfinite")
    for policy in ("saturate", "propagate"):
        main(*arguments, policy).succeeded()
        main("decode", "z.safetensors", "z.npy").succeeded()
        expected = axs6.decode(axs6.encode(x, "mxfp4", nonfinite=policy))
        assert np.array_equal(np.load(folder / "z.npy"), expected, equal_nan=True)
    assert "element (0, 0) is nan" in main(*arguments, "error").refused()
    line = main(*arguments, "drop").refused()
    assert line.endswith("nonfinite must be one of error, saturate, propagate, not 'drop'")
    files, policy = arguments[:3], ("--nonfinite", "propagate")
    line = main(*files, *policy, "--format", "axs6").refused()
    assert 'nonfinite="propagate" needs a format with NaN' in line


def test_checkpoints(main: Cli, folder: Path) -> None:
    x = np.load(folder / "x.npy")
    command = ("encode", "x.npy", "x.safetensors", "--as", "gpt-oss", "--format", "mxfp4")
    assert "gpt-oss-mxfp4" in main(*command).succeeded()
    assert "gpt-oss-mxfp4" in main("info", "x.safetensors").succeeded()
    said = main("decode", "x.safetensors", "y.safetensors").succeeded()
    assert said == "wrote y.safetensors: 1 tensors\n"
    decoded = load_file(folder / "y.safetensors")["x"]
    assert np.array_equal(decoded.astype(np.float32), axs6.decode(axs6.encode(x, "mxfp4")))
    line = main(*command[:-1], "nvfp4").refused()
    assert line == "gpt-oss has no layout for nvfp4, but for mxfp4"


def test_names_are_no_markup(cli: Cli, folder: Path) -> None:
    names = {"[red]w": np.ones((2, 8)), "[/b]": np.ones(8)}
    np.savez(folder / "[x].npz", **names)  # type: ignore[arg-type]
    done = cli("encode", "[x].npz", "[y].safetensors")
    assert "wrote [y].safetensors" in done.succeeded()
    assert all(name in done.stdout for name in names)
    assert "[/b]" in cli("info", "[y].safetensors").succeeded()
    done = cli("decode", "[y].safetensors", "[z].safetensors")
    assert done.succeeded() == "wrote [z].safetensors: 2 tensors\n"


def link(folder: Path, how: str) -> str:
    """A name of the folder's input: its own, another, a symbolic link or a hard link."""
    if how == "symlink":
        (folder / "link.safetensors").symlink_to("in.safetensors")
        return "link.safetensors"
    if how == "hard link":
        (folder / "link.safetensors").hardlink_to(folder / "in.safetensors")
        return "link.safetensors"
    return {"same": "in.safetensors", "roundabout": "../" + folder.name + "/in.safetensors"}[how]


def test_a_profile_is_in_the_container(main: Cli, folder: Path) -> None:
    options = ("--format", "nvfp4", "--profile", "compressed-tensors")
    main("encode", "x.npy", "y.safetensors", *options).succeeded()
    assert "nvfp4, as compressed-tensors, axis -1" in main("info", "y.safetensors").succeeded()


@pytest.mark.parametrize("how", ["same", "roundabout", "symlink", "hard link"])
@pytest.mark.parametrize(
    "command",
    [
        "encode in.safetensors OUT",
        "encode in.safetensors y.safetensors --json OUT",
        "decode in.safetensors OUT",
        "info in.safetensors --json OUT",
    ],
)
def test_an_output_that_is_an_input_is_refused(
    main: Cli, folder: Path, command: str, how: str
) -> None:
    main("encode", "x.npy", "in.safetensors").succeeded()
    before = (folder / "in.safetensors").read_bytes()
    name = link(folder, how)
    line = main(*(name if word == "OUT" else word for word in command.split())).refused()
    assert line == f"output {name} must not be the same file as input in.safetensors"
    assert (folder / "in.safetensors").read_bytes() == before
    assert not (folder / "y.safetensors").exists()


@pytest.mark.parametrize(
    "command",
    [
        "simulate encoder -i x.npy -o block.codes=x.npy",
        "simulate encoder -i values=x.npy --json x.npy",
        "simulate encoder -i x.npy --vcd x.npy",
        "area dot --liberty x.npy --html x.npy",
        "area dot --liberty x.npy --markdown x.npy",
        "area dot --liberty x.npy --json x.npy",
        "study accuracy x.npy:model --json x.npy",
    ],
)
def test_every_command_that_reads_and_writes_keeps_its_input(
    main: Cli, folder: Path, command: str
) -> None:
    before = (folder / "x.npy").read_bytes()
    line = main(*command.split()).refused()
    assert line == "output x.npy must not be the same file as input x.npy"
    assert (folder / "x.npy").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        ("regress dot --junit new/y --json new/../new/y", "new/y", "new/../new/y"),
        ("area dot --html y --json y", "y", "y"),
        ("encode x.npy y.safetensors --json y.safetensors", "y.safetensors", "y.safetensors"),
    ],
)
def test_two_outputs_are_two_files(
    main: Cli, folder: Path, command: str, first: str, second: str
) -> None:
    before = sorted(folder.iterdir())
    line = main(*command.split()).refused()
    assert line == f"output {second} must not be the same file as output {first}"
    assert sorted(folder.iterdir()) == before


def test_a_device_may_be_named_twice(main: Cli, folder: Path) -> None:
    main("encode", "x.npy", "y.safetensors", "--json", "/dev/null").succeeded()
    main("info", "y.safetensors", "--json", "/dev/null").succeeded()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("encode", "none.npy", "y.safetensors"), "cannot read none.npy: No such file"),
        (("encode", "x.npy", "y.npz"), "y.npz must end in .safetensors"),
        (("encode", "x.npy", "y.safetensors", "--block", "9"), "block must be one of"),
        (("encode", "x.npy", "y.safetensors", "--mode", "best"), "mode must be one of dense"),
        (
            ("encode", "x.npy", "y.safetensors", "--format", "mxfp5"),
            "'mxfp5' is no block format: a name, or an element",
        ),
        (
            ("encode", "x.npy", "y.safetensors", "--format", "mx9", "--rule", "up"),
            "rule must be one of floor, ceil, even, rceil, not 'up'",
        ),
        (
            ("encode", "x.npy", "y.safetensors", "--format", "int8", "--rule", "ceil"),
            "int8_float32 has no exponent scale, so no rule 'ceil' for it",
        ),
        (
            ("encode", "x.npy", "y.safetensors", "--format", "mx9", "--mode", "auto"),
            "mx9 has no modes, so mode must be dense, not 'auto'",
        ),
        (("encode", "x.npy", "y.safetensors", "--axis", "2"), "axis must be one of 2 axes"),
        (
            ("encode", "x.npy", "y.safetensors", "--random-bits", "8"),
            "--random-bits is for --rounding stochastic, not nearest",
        ),
        (
            ("encode", "x.npy", "y.safetensors", "--seed", "1", "--rounding", "toward_zero"),
            "--seed is for --rounding stochastic, not toward_zero",
        ),
        (("encode", "x.npy", "y.safetensors", "--flatten", "2"), "flatten must be one of 2 axes"),
        (
            ("encode", "x.npy", "y.safetensors", "--flatten", "0", "--axis", "0"),
            "axis and flatten cannot be given together",
        ),
        (("encode", "x.npy", "y.safetensors", "--include", "z"), "no floating-point tensor"),
        (("encode", "x.npy", "no/y.safetensors"), "cannot write to no/y.safetensors"),
        (("decode", "x.npy", "y.npy"), "x.npy must end in .safetensors"),
        (("info", "x.npy"), "x.npy must end in .safetensors"),
    ],
)
def test_bad_input_is_one_line(
    main: Cli, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in main(*arguments).refused()
    assert not (folder / "y.safetensors").exists()
