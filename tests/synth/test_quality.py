"""Area and depth of the units: none grows unless the table in quality.csv says so."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import quality
from amaranth.hdl import Module, Signal
from quality import (
    Change,
    Key,
    Table,
    changes,
    measured,
    measured_in_modules,
    read_table,
    write_table,
)

from axs6.hw.decoder.decoder import Decoder
from axs6.hw.registry import ALL_UNITS, UNITS
from axs6.hw.verilog import generate
from axs6.synth.area import area, modules_area
from axs6.synth.errors import SynthesisError

pytestmark = pytest.mark.filterwarnings("default:remake the table")

TABLE = Path(__file__).with_name("quality.csv")
MAPPED = ("decoder",)
"""Units whose small forms are measured on every target in each run, the others on generic gates."""

LARGE = [unit for unit, _ in quality.IN_MODULES]
"""Units over which ABC takes long: the slow tests measure their modules one by one."""

BETWEEN = ("axis_dot", "axis_encoder", "axis_decoder", "stochastic_encoder")
"""Units that take as long, of which every run measures what they contain or are between."""

LONG = ("hadamard", "choice_encoder", "dot")
"""Small units over which it takes long too, of which the slow tests measure the whole."""

SMALL = [
    pytest.param(
        *(unit, parameters, target),
        id="-".join(map(str, (unit, *parameters.values(), target))),
        marks=[pytest.mark.slow]
        * (
            unit in LONG
            or parameters.get("dtype") == "fp32"
            or (target == "generic" and "dtype" in parameters)
        ),
    )
    for unit, parameters in quality.DESIGNS
    if parameters["block"] == 8 and not parameters.keys() & {"mode", "rounding", "blocks", "format"}
    for target in quality.FIGURES
    if unit not in (*LARGE, *BETWEEN) and (target == "generic" or unit in MAPPED)
]
SMALL_DECODER = ("decoder", {"block": 8, "dtype": "bf16"})


def check(new: Table) -> None:
    """Fail with every figure that grew; warn of those that shrank."""
    found = changes(read_table(TABLE), new)
    shrunk = [str(change) for change in found if not change.grew]
    if shrunk:
        lines = "\n".join(shrunk)
        warnings.warn(UserWarning(f"remake the table with `make quality`:\n{lines}"), stacklevel=2)
    grown = [str(change) for change in found if change.grew]
    assert not grown, "larger than the table says; `make quality` remakes it:\n" + "\n".join(grown)


@pytest.mark.parametrize(("unit", "parameters", "target"), SMALL)
def test_small_units_have_not_grown(unit: str, parameters: dict[str, object], target: str) -> None:
    check(measured(unit, parameters, target))


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "parameters"), quality.IN_MODULES)
def test_modules_of_large_units_have_not_grown(unit: str, parameters: dict[str, object]) -> None:
    check(measured_in_modules(unit, parameters))


@pytest.mark.slow
@pytest.mark.parametrize("target", quality.FIGURES)
@pytest.mark.parametrize(("unit", "parameters"), quality.DESIGNS)
def test_no_unit_has_grown(unit: str, parameters: dict[str, object], target: str) -> None:
    check(measured(unit, parameters, target))


def test_table_has_every_design() -> None:
    names = {
        (unit, " ".join(f"{name}={value}" for name, value in parameters.items()))
        for unit, parameters in quality.DESIGNS
    }
    missing = sorted({unit for unit, _ in names - {key[:2] for key in read_table(TABLE)}})
    assert not missing, f'not in the table: `make quality ONLY="{" ".join(missing)}"`'
    assert {unit for unit, _ in names} == set(ALL_UNITS)


class Grown(Decoder):
    """A decoder whose first value is disturbed by the sum of all codes."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = decoder = Decoder(len(self.i.payload.codes), "bf16")
        total = Signal(16)
        i, o = self.i.payload, self.o.payload
        m.d.comb += [
            decoder.i.payload.eq(i),
            decoder.i.valid.eq(self.i.valid),
            decoder.o.ready.eq(self.o.ready),
            self.i.ready.eq(decoder.i.ready),
            self.o.valid.eq(decoder.o.valid),
            total.eq(sum(i.codes)),
        ]
        for index, value in enumerate(decoder.o.payload.values):
            m.d.comb += o.values[index].eq(value ^ (0 if index else total))
        return m


def test_useless_adder_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_UNITS, "decoder", replace(UNITS["decoder"], component=Grown))
    with pytest.raises(AssertionError) as caught:
        check(measured(*SMALL_DECODER, "generic"))
    old = read_table(TABLE)[Key("decoder", "block=8 dtype=bf16", "generic", "gate_equivalents")]
    expected = f"decoder block=8 dtype=bf16 on generic: gate_equivalents was {old:g} and is "
    assert expected in str(caught.value)


def test_a_larger_module_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = measured_in_modules(*SMALL_DECODER)
    monkeypatch.setitem(ALL_UNITS, "decoder", replace(UNITS["decoder"], component=Grown))
    (change,) = changes(right, measured_in_modules(*SMALL_DECODER))
    assert change.grew


def test_modules_are_those_of_the_unflattened_area() -> None:
    made = generate("block_dot", block=8)
    report = area(made.verilog, made.module)
    assert modules_area(made.verilog, made.module) == report.unflattened
    assert report.unflattened.figures["gate_equivalents"] > report.total.figures["gate_equivalents"]
    alone = "module t(input a, output y); assign y = ~a; endmodule"
    with pytest.raises(SynthesisError, match="the design 't' must have submodules and has none"):
        modules_area(alone, "t")


KEY = Key("dot", "block=8", "generic", "levels")


def test_changes_are_those_beyond_three_percent() -> None:
    assert changes({KEY: 100}, {KEY: 103}) == changes({KEY: 100}, {KEY: 97}) == []
    grown, shrunk = Change(KEY, 100, 104), Change(KEY, 100, 96)
    assert changes({KEY: 100}, {KEY: 104}) == [grown]
    assert changes({KEY: 100}, {KEY: 96}) == [shrunk]
    assert (grown.grew, shrunk.grew) == (True, False)
    assert str(grown) == "dot block=8 on generic: levels was 100 and is 104 (+4.0%)"
    assert changes({}, {KEY: 5}) == [Change(KEY, None, 5)]
    assert Change(KEY, None, 5).grew
    assert str(Change(KEY, None, 5)) == "dot block=8 on generic: levels is 5 and not in the table"
    assert changes({KEY: 0}, {KEY: 1}) == [Change(KEY, 0, 1)]
    assert str(Change(KEY, 0, 1)) == "dot block=8 on generic: levels was 0 and is 1"


def test_what_shrank_is_said_and_does_not_fail() -> None:
    table = read_table(TABLE)
    key = next(iter(table))
    with pytest.warns(UserWarning, match=rf"make quality`:\n{key.unit} .*{key.figure} was"):
        check({key: table[key] / 2})


def test_table_is_read_as_written(tmp_path: Path) -> None:
    table = {KEY: 12.25, KEY._replace(target="sky130", figure="area"): 10330.5312}
    path = tmp_path / "quality.csv"
    write_table(path, table)
    assert read_table(path) == table
    assert [each.name for each in tmp_path.iterdir()] == ["quality.csv"]


def test_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("unit,area\ndot,5\n")
    with pytest.raises(ValueError, match="must have the columns unit, parameters, target, figure"):
        read_table(path)


def test_command_measures_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quality, "DESIGNS", [SMALL_DECODER])
    monkeypatch.setattr(quality, "FIGURES", {"generic": ("gates", "levels")})
    monkeypatch.setattr(quality, "IN_MODULES", [])
    path = tmp_path / "quality.csv"
    gates = Key("decoder", "block=8 dtype=bf16", "generic", "gates")
    write_table(path, {gates: 1.0, KEY: 2.0})
    assert quality.main([str(path), "decoder"]) == 0
    table = read_table(path)
    assert {key.figure for key in table if key.unit == "decoder"} == {"gates", "levels"}
    assert table[KEY] == 2
    assert "gates was 1 and is" in capsys.readouterr().out
    monkeypatch.setattr(quality, "measured", lambda *_: {gates: 3.0})
    assert quality.main([str(path)]) == 0
    assert read_table(path) == {gates: 3}
    assert quality.main([str(path), "divider"]) == 2


def test_command_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quality.main([]) == 2
    (tmp_path / "empty.csv").touch()
    assert quality.main([str(tmp_path / "empty.csv")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("axs6: ")
