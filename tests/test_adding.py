"""A format, an accumulator, a unit and a command are known everywhere by one entry or file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import axs6
import axs6.commands
from axs6.golden.accumulator import ACCUMULATORS, Accumulator
from axs6.golden.check.comparison import GOLDEN
from axs6.golden.check.dot import compare_products
from axs6.golden.check.exact import accumulator as exact_accumulator
from axs6.golden.check.exact import formats as exact_formats
from axs6.golden.check.exact.floats import power
from axs6.golden.check.subjects import CheckedFormat
from axs6.golden.formats import CATALOG, BlockFormat, Exponent, Level, TwosComplement
from axs6.hw import registry, units
from axs6.torch import fake_quantise, matmul

Main = Callable[..., Any]


def passed(printed: str) -> bool:
    """Whether something was compared and nothing differed."""
    checks = json.loads(printed)
    return bool(checks) and all(each["cases"] and not each["mismatches"] for each in checks)


@pytest.fixture
def new_format(monkeypatch: pytest.MonkeyPatch) -> str:
    """A format that the catalogs have for one test."""
    fmt = BlockFormat(TwosComplement(3, -1), (Level(Exponent(), 8),))
    public = exact_formats.Definition(
        exact_formats.twos_complement(3, power(-1)), (exact_formats.Exponent(8),)
    )
    monkeypatch.setitem(CATALOG, "new3", fmt)
    monkeypatch.setitem(exact_formats.CATALOG, "new3", public)
    return "new3"


def test_a_format(main: Main, new_format: str, tmp_path: Path) -> None:
    assert f"{new_format} " in main("list", "--formats").succeeded()
    assert str(CATALOG[new_format]) in main("info", new_format).succeeded()
    checked = ("validate", "--format", new_format, "--samples", "5", "--json", "-")
    assert passed(main(*checked).succeeded())
    x = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    main("encode", "x.npy", "x.safetensors", "--format", new_format).succeeded()
    main("decode", "x.safetensors", "y.npy").succeeded()
    expected = axs6.decode(axs6.encode(x, new_format))
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)
    assert np.array_equal(fake_quantise(torch.from_numpy(x), new_format).numpy(), expected)
    main("generate", "decoder", "--format", new_format, "-o", "rtl").succeeded()
    assert (tmp_path / "rtl" / f"axs6_decoder_{new_format}.v").exists()
    unit = registry.find("block_dot")
    parameters = unit.simulated({"format": new_format})
    items = unit.random(parameters, np.random.default_rng(0), 100)
    np.savez(tmp_path / "in.npz", **items)  # type: ignore[arg-type]
    files = ("-i", "in.npz", "-o", "out.npz")
    main("simulate", "block_dot", "--format", new_format, *files).succeeded()
    with np.load(tmp_path / "out.npz") as outputs:
        for name, values in unit.golden(items, parameters).items():
            assert np.array_equal(outputs[name], values)


def test_an_accumulator(main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACCUMULATORS, "newest", Accumulator(reduction=16, fraction=3, fused=True))
    public = exact_accumulator.Accumulator(reduction=16, fraction=3, fused=True)
    monkeypatch.setattr("axs6.golden.check.dot.ACCUMULATORS", {"newest": public})
    compared = list(
        compare_products(GOLDEN, np.random.default_rng(0), 1, CheckedFormat.of("mxfp4"))
    )
    assert {each.what.split()[1] for each in compared if each.what.startswith("matmul")} == {
        "newest"
    }
    assert all(each.model == each.exact for each in compared)
    a, b = np.random.default_rng(0).normal(size=(2, 5, 64)).astype(np.float32)
    expected = axs6.matmul(*(axs6.encode(x, "mxfp4") for x in (a, b)), "newest")
    options = {"format": "mxfp4", "accumulator": "newest"}
    assert np.array_equal(matmul(*map(torch.from_numpy, (a, b.T)), **options).numpy(), expected)
    small = ("--block", "8", "--format", "mx4", "--view", "behaviour")
    main("generate", "dot", *small, "--accumulator", "newest", "-o", "rtl").succeeded()
    assert (tmp_path / "rtl" / "axs6_dot_mx4_newest.v").exists()


UNIT = '''
"""A unit in one file."""

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import data

from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.units.unit import Unit


class Sum(Step):
    def __init__(self, block):
        codes = data.StructLayout({"codes": data.ArrayLayout(4, block)})
        super().__init__(codes, data.StructLayout({"sum": 4 + block.bit_length()}), levels=block)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.sum.eq(sum(self.i.codes))
        return m


class Adder(Pipeline):
    """Adds the codes of a block."""

    def __init__(self, block: int = 8, stages: int = 0):
        super().__init__([Sum(block)], stages)


def random(parameters, rng, count):
    return {"codes": rng.integers(0, 16, (count, parameters["block"]), np.uint8)}


ADDER = Unit(
    name="adder",
    summary="the sum of codes",
    component=Adder,
    values=lambda formats: {"block": (8, 16)},
    golden=lambda items, parameters: {"sum": items["codes"].sum(axis=1, dtype=np.uint16)},
    corners=lambda parameters: {"codes": np.full((1, parameters["block"]), 15, np.uint8)},
    random=random,
    blocks=False,
)
'''


@pytest.fixture
def adder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A unit whose file lies beside those of the others for one test."""
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / "adder.py").write_text(UNIT)
    monkeypatch.setattr(units, "__path__", [*units.__path__, str(tmp_path / "units")])
    found = registry.collect(units)
    assert found.keys() - registry.ALL_UNITS.keys() == {"adder"}
    monkeypatch.setitem(registry.UNITS, "adder", found["adder"])
    monkeypatch.setitem(registry.ALL_UNITS, "adder", found["adder"])
    return "adder"


def test_a_unit(main: Main, adder: str, tmp_path: Path) -> None:
    assert "the sum of codes" in main("list").succeeded()
    main("generate", adder, "--block", "16", "-o", "rtl").succeeded()
    codes = np.random.default_rng(0).integers(0, 16, (9, 16), np.uint8)
    np.savez(tmp_path / "in.npz", codes=codes)
    files = ("-i", "in.npz", "-o", "out.npy")
    main("simulate", adder, "--block", "16", "--stages", "1", *files).succeeded()
    assert np.load(tmp_path / "out.npy").ravel().tolist() == codes.sum(axis=1).tolist()
    assert "axs6_adder on generic" in main("area", adder).succeeded()


def test_two_units_with_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = UNIT.replace('name="adder"', 'name="lfsr"')
    (tmp_path / "second.py").write_text(text)
    monkeypatch.setattr(units, "__path__", [*units.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match="second unit with the name lfsr"):
        registry.collect(units)


COMMAND = '''
"""`axs6 hello`."""

EXTRA = "sim"


def run(name: str) -> None:
    """Greet somebody.

    Example: axs6 hello world
    """
    if name == "nobody":
        import package_of_greetings
    print(f"Hello, {name}!")
'''


def test_a_command(main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hello_command.py").write_text(COMMAND)
    folders = [*axs6.commands.__path__, str(tmp_path)]
    monkeypatch.setattr(axs6.commands, "__path__", folders)
    assert "Greet somebody." in main("--help").succeeded()
    assert main("hello", "world").succeeded() == "Hello, world!\n"
    line = main("hello", "nobody").refused()
    assert line.startswith("the package package_of_greetings is missing: ")
    assert line.endswith('[sim]"')
