"""`axs6 encode --as`, `convert` and `doctor` as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from axs6.commands import options
from axs6.files.checkpoints import KINDS

Cli = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in the folder in which commands run."""
    rng = np.random.default_rng(0)
    tensors = {
        "up.weight": rng.standard_normal((64, 128)).astype(np.float32),
        "head.weight": rng.standard_normal((32, 64)).astype(np.float32),
        "norm.weight": np.ones(64, np.float32),
    }
    (tmp_path / "model").mkdir()
    save_file(tensors, tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "tiny"}))
    return tmp_path


def test_help_names_every_kind() -> None:
    *first, last = KINDS
    assert f"{', '.join(first)} or {last}" == options.KINDS


def test_a_model_there_and_back(main: Cli, folder: Path) -> None:
    head = ("--exclude", "head*")
    said = main("encode", "model", "a", "--as", "modelopt", "--format", "nvfp4", *head).succeeded()
    assert "1 tensors encoded: wrote a" in said
    assert "modelopt-nvfp4" in main("info", "a").succeeded()
    assert main("doctor", "a", "--against", "model").succeeded() == "a: nothing found\n"
    said = main(
        "convert", "a", "b", "--to", "compressed-tensors", "--json", "rows.json"
    ).succeeded()
    assert "1 weights with the same values: wrote b" in said
    rows = {row["tensor"]: row for row in json.loads((folder / "rows.json").read_text())}
    assert rows["up.weight"]["after"] == "compressed-tensors-nvfp4"
    assert rows["up.weight"]["equal_in"] in ("float32", "bfloat16")
    assert rows["head.weight"]["after"] == "F32"
    assert main("decode", "b", "c").succeeded() == "wrote c: 3 tensors\n"
    assert json.loads((folder / "c" / "config.json").read_text()) == {"model_type": "tiny"}
    said = main("convert", "a", "d", "--to", "gpt-oss", "--requantise").succeeded()
    assert "0 weights with the same values, 1 encoded again: wrote d" in said


def test_what_is_refused(main: Cli, folder: Path) -> None:
    main("encode", "model", "a", "--as", "modelopt", "--format", "nvfp4").succeeded()
    for arguments, message in (
        (("convert", "a", "b", "--to", "onyx"), "the kind of checkpoint must be one of gpt-oss, "),
        (("convert", "a", "b", "--to", "gguf"), "b must end in .gguf"),
        (("convert", "a", "b", "--to", "gpt-oss"), "with --requantise it is encoded again"),
        (
            ("convert", "a", "b", "--to", "quark", "--layout", "x"),
            "the layout of quark must be one of quark-mxfp4, ",
        ),
        (("convert", "model", "b", "--to", "quark"), "it has no weight in a layout that is known"),
        (("encode", "model", "b", "--as", "quark", "--axis", "0"), "--as does not go with --axis"),
        (
            ("encode", "model", "b", "--as", "quark", "--rule", "ceil"),
            "--rule with --as needs --format",
        ),
        (("encode", "model", "b.safetensors", "--layout", "mxfp8"), "--layout needs --as"),
    ):
        assert message in main(*arguments).refused()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "model"]


def test_findings_are_exit_status_1(cli: Cli, main: Cli, folder: Path) -> None:
    main("encode", "model", "a", "--as", "modelopt", "--format", "nvfp4").succeeded()
    path = folder / "a" / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"]["group_size"] = 32
    path.write_text(json.dumps(config))
    done = cli("doctor", "a", "--json", "-")
    assert done.returncode == 1
    assert "a: 2 findings" in done.stderr
    found = json.loads(done.stdout)
    assert {(each["tensor"], each["check"]) for each in found} == {
        ("up.weight", "configuration"),
        ("head.weight", "configuration"),
    }
    assert "16 values, and the configuration says 32" in found[0]["what"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "a", "b", "--to", "compressed-tensors"),
        ("encode", "a", "b", "--as", "modelopt"),
        ("info", "a"),
        ("doctor", "a"),
        ("doctor", "model", "--against", "a"),
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_figures_replace_no_file_of_a_source(
    arguments: tuple[str, ...], name: str, main: Cli, folder: Path
) -> None:
    main("encode", "model", "a", "--as", "modelopt", "--format", "nvfp4").succeeded()
    before = (folder / "a" / name).read_bytes()
    said = main(*arguments, "--json", f"a/{name}").refused()
    assert f"output a/{name} must not be the same file as input a/{name}" in said
    assert (folder / "a" / name).read_bytes() == before
    assert not (folder / "b").exists()


def test_figures_are_not_the_file_that_is_written(main: Cli, folder: Path) -> None:
    nvfp4, target = ("--as", "modelopt", "--format", "nvfp4"), "b.safetensors"
    main("encode", "model", "a", *nvfp4).succeeded()
    for arguments in (
        ("encode", "model", target, *nvfp4),
        ("convert", "a", target, "--to", "compressed-tensors"),
    ):
        said = main(*arguments, "--json", target).refused()
        assert f"output {target} must not be the same file as output {target}" in said
        assert not (folder / target).exists()
