"""`axs6 list --formats` and `axs6 info FORMAT` as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.explain import explain
from axs6.golden.explain_profile import explain_profile

Cli = Callable[..., Any]


def test_formats_are_the_catalog_by_name() -> None:
    found = axs6.formats()
    assert list(found)[:2] == ["axs6", "mx9"]
    assert all(isinstance(fmt, axs6.BlockFormat) for fmt in found.values())
    assert found["mx9"] == axs6.block_format("int8_e8m0_t16s2o1")
    found.clear()
    assert axs6.formats()


def test_formats_are_listed_without_hardware(cli: Cli, tmp_path: Path) -> None:
    without = "import sys; sys.modules['amaranth'] = None"
    done = cli("list", "--formats", "--json", "formats.json", before=without)
    header, *lines = done.succeeded().splitlines()
    assert header.split()[:3] == ["format", "string", "bits"]
    assert [line.split()[0] for line in lines] == list(axs6.formats())
    row = "mxfp8_e4m3 e4m3fn_e8m0_t32 8.25 8.25 10 448 2^-9 253 17.8 271.8"
    assert row.split() in [line.split() for line in lines]
    figures = json.loads((tmp_path / "formats.json").read_text())
    assert [each["string"] for each in figures] == [str(fmt) for fmt in axs6.formats().values()]
    assert figures[0]["bits"] == 6.3125


@pytest.mark.parametrize("name", ["mx9", "axs6", "nvfp4", "uint8", "e4m3fn_e8m0-even_t8"])
def test_a_format_is_explained(main: Cli, name: str) -> None:
    printed = main("info", name).succeeded()
    assert printed.splitlines() == explain(axs6.block_format(name))


def test_a_format_is_explained_as_json(main: Cli) -> None:
    figures = json.loads(main("info", "mx9", "--json", "-").succeeded())
    assert (figures["string"], figures["packed_bytes"]) == ("int8_e8m0_t16s2o1", 18)
    assert figures["fields"][8:10] == [
        {"label": "t[7]", "first": 15, "bits": 1},
        {"label": "code[0]", "first": 16, "bits": 8},
    ]
    assert {"what": "one", "code": 64, "value": "1"} in figures["codes"]


@pytest.mark.parametrize("command", ["info", "encode", "validate"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("_t33", "is needed at '_t33' (character 1); the nearest name is"),
        ("mx9_t33", "not 33, at 't33' (character 5); the nearest name is mx9"),
        ("int8_e8m0_t16s16o1", "and 16 after 16 does not, at 'e8m0' (character 6); the nearest"),
        ("e4m3fn_e9m0_t32", "from 4 to 8, not 9, at 'e9m0' (character 8); the nearest name is"),
    ],
)
def test_strings_that_are_no_format(
    main: Cli, tmp_path: Path, command: str, text: str, message: str
) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 32), np.float32))
    files = ("x.npy", "y.safetensors") if command == "encode" else ()
    arguments = (text,) if command == "info" else (*files, "--format", text)
    assert message in main(command, *arguments).refused()
    assert not (tmp_path / "y.safetensors").exists()


def test_a_file_goes_before_a_format_of_its_name(main: Cli, tmp_path: Path) -> None:
    (tmp_path / "mx9").write_text("")
    assert main("info", "mx9").refused() == "mx9 must end in .safetensors"
    (tmp_path / "mx6").mkdir()
    assert "mx6: int5_e8m0_t16s2o1" in main("info", "mx6").succeeded()


def test_info_says_that_it_shows_the_file(
    main: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.ones(32))
    main("encode", "x.npy", "y.safetensors").succeeded()
    assert "block format" not in main("info", "y.safetensors").succeeded()
    monkeypatch.setattr("axs6.commands.info_command._is_format", lambda text: True)
    line = "y.safetensors is a block format and a file here; this is the file"
    assert main("info", "y.safetensors").succeeded().splitlines()[0] == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mx99", "needed at 'mx99' (character 1); the nearest name is mx9"),
        ("e4m3fn_e8x0", "needed at 'e8x0' (character 8)"),
        ("e4m3fn", "a scale, such as e8m0 or float32, is needed at its end"),
        ("none.safetensors", "cannot read none.safetensors"),
        ("no/mx9", "no/mx9 must end in .safetensors"),
    ],
)
def test_what_is_neither_is_refused_in_one_line(main: Cli, text: str, message: str) -> None:
    assert message in main("info", text).refused()


def test_a_profile_is_explained(main: Cli) -> None:
    printed = main("info", "mxfp4", "--profile", "llama.cpp").succeeded()
    assert printed.splitlines() == explain_profile(axs6.block_format("mxfp4"), "llama.cpp")
    figures = json.loads(main("info", "mx6", "--profile", "quark", "--json", "-").succeeded())
    assert figures["first_difference"] == "values"
    assert [step["step"] for step in figures["steps"]] == [
        "values", "exponent of a block", "rounding",
    ]  # fmt: skip
    assert figures["example"]["codes"][1] == 0
    same = json.loads(main("info", "nvfp4", "--profile", "torchao", "--json", "-").succeeded())
    assert same["first_difference"] is same["example"] is None


@pytest.mark.parametrize("command", ["info", "encode"])
def test_profiles_that_do_not_have_the_format(main: Cli, tmp_path: Path, command: str) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 32), np.float32))
    for profile, message in (
        ("quark", "profile quark has the formats mx9, mx6, not mxfp4"),
        ("none", "profile must be one of compressed-tensors, llama.cpp, quark, torchao"),
    ):
        files = ("x.npy", "y.safetensors", "--format") if command == "encode" else ()
        assert message in main(command, *files, "mxfp4", "--profile", profile).refused()
    assert not (tmp_path / "y.safetensors").exists()
    refused = main("info", "y.safetensors", "--profile", "quark").refused()
    assert refused.startswith("'y.safetensors' is no block format")
