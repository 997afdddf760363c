"""Energy: nets and their capacitances by hand, and whole units."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.golden.formats import operand_formats
from axs6.hw.core.layouts import fields
from axs6.hw.registry import UNITS, find
from axs6.hw.verilog import convert, generate
from axs6.sim.batch.activity import Activity
from axs6.studies.stimuli import DIGITS
from axs6.synth import capacitance, gates
from axs6.synth.capacitance import Capacitances, Pin, generic
from axs6.synth.energy import consumption, energy, measure
from axs6.synth.energy_nets import KINDS, Nets, find_nets
from axs6.synth.energy_report import LEAVES_OUT, PARTS, Consumption
from axs6.synth.energy_stimulus import (
    LENGTH,
    RANDOM,
    SEQUENCES,
    products,
    reference_items,
    unit_items,
)
from axs6.synth.errors import SynthesisError
from axs6.synth.mapped import mapped_netlist
from axs6.synth.reference import Int8Dot, int8_dot

LANES = 4

DESIGN = """
module t(input clk, rst, a, b, output reg q, output y);
  always @(posedge clk) q <= ~(a & b);
  assign y = ~(a | b);
endmodule
"""


def library(scale: float = 1.0) -> Capacitances:
    pins = {
        name: {
            pin: Pin(each.direction, scale * (each.capacitance or 0)) for pin, each in cell.items()
        }
        for name, cell in generic().pins.items()
    }
    return Capacitances(pins, 1.0, "NAND2 inputs", "test")


@pytest.fixture(scope="module")
def reference() -> str:
    return mapped_netlist(convert(Int8Dot(LANES), "int8_dot"), "int8_dot")


def items(rng: np.random.Generator, sequences: int = 5, length: int = 9) -> dict[str, Any]:
    shape = (sequences, length, LANES)
    return {side: rng.integers(-128, 128, shape, np.int8) for side in "ab"}


def test_capacitances_of_nets_by_hand() -> None:
    nets = find_nets(mapped_netlist(DESIGN, "t"), generic())
    by_kind = {
        kind: sorted(nets.capacitances[nets.kinds == index]) for index, kind in enumerate(KINDS)
    }
    # rst drives nothing; a and b drive a NAND2 and a NOR2; these drive themselves (three drains),
    # and the NAND2 the flip-flop's D; Q has two drains. The clock drives one pin.
    assert by_kind == {"inputs": [0, 2, 2], "gates": [1.5, 2.5], "flip_flops": [1]}
    assert nets.clock == 6


def test_energy_of_an_activity_by_hand() -> None:
    nets = Nets((2, 3, 4), np.array([2.0, 3.0, 5.0]), np.array([0, 1, 2]), clock=0.5)
    changes = np.array([[4, 2, 0], [8, 2, 4]], np.uint64)
    used = consumption(Activity(changes, 4, {}, np.zeros(2, np.int64)), nets, 10.0, operations=2)
    # sequences: (4*2 + 2*3) / 4 = 3.5 and (16 + 6 + 20) / 4 = 10.5, and 2 * 0.5 for the clock
    assert used.per_item == 10 * (7.0 + 1)
    assert used.per_operation == 40.0
    assert used.standard_error == pytest.approx(10 * 3.5)
    assert used.parts == {"inputs": 30.0, "gates": 15.0, "flip_flops": 25.0, "clock": 10.0}
    assert sum(used.parts.values()) == used.per_item
    assert (used.activity, used.nets, used.cycles) == (20 / 24, 3, 8)


def test_a_constant_input_costs_nothing(reference: str) -> None:
    constant = {side: np.full((2, 6, LANES), 77, np.int8) for side in "ab"}
    used = measure(Int8Dot(LANES), reference, library(), constant, int8_dot, LANES)
    assert used.per_item == used.activity == used.standard_error == 0


@pytest.mark.slow  # the test before has the unit without registers
def test_a_constant_input_costs_the_clock_alone() -> None:
    unit, parameters = UNITS["block_dot"], {"block": 8, "stages": 2}
    component: Any = unit.build(**parameters)
    netlist = mapped_netlist(convert(component, "dot"), "dot")
    constant = {
        "a.exponent": np.full((2, 6), 100),
        "a.codes": np.full((2, 6, 8), 21),
        "b.exponent": np.full((2, 6), 99),
        "b.codes": np.full((2, 6, 8), 63),
    }
    used = measure(component, netlist, library(), constant, lambda i: unit.golden(i, parameters), 8)
    flip_flops = netlist.count('"$_DFF_P_"') // 2  # once mapped, once in its logic
    assert flip_flops > 25
    assert used.parts == {**dict.fromkeys(KINDS, 0.0), "clock": 2 * 6.0 * flip_flops}


def test_energy_is_proportional_to_capacitance(reference: str) -> None:
    given = items(np.random.default_rng(1))
    once, twice = (
        measure(Int8Dot(LANES), reference, library(scale), given, int8_dot, LANES)
        for scale in (1.0, 2.0)
    )
    assert once.per_item > 0
    assert twice.per_item == pytest.approx(2 * once.per_item)
    assert twice.activity == once.activity


def test_the_reference_equals_numpy_on_every_bit(reference: str) -> None:
    rng = np.random.default_rng(2)
    given = items(rng, 64, 100)
    ends = np.array([-128, -127, -1, 0, 1, 127], np.int8)
    for side in "ab":
        given[side][:8] = rng.choice(ends, given[side][:8].shape)
        given[side][0, :2] = -128
    measure(Int8Dot(LANES), reference, library(), given, int8_dot, LANES)


def test_a_wrong_netlist_is_caught(reference: str) -> None:
    netlist = json.loads(reference)
    cells = netlist["modules"]["top"]["cells"].values()
    gate = [cell for cell in cells if cell["type"] == "$_AND_"][-1]
    gate["type"] = "$_OR_"
    given = items(np.random.default_rng(3), 20, 50)
    with pytest.raises(SynthesisError, match="the mapped netlist differs from its model"):
        measure(Int8Dot(LANES), json.dumps(netlist), library(), given, int8_dot, LANES)


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        pytest.param("encoder", {"block": 8, "dtype": "bf16"}, marks=pytest.mark.slow),
        pytest.param(
            *("decoder", {"block": 8, "stages": 1, "dtype": "bf16"}), marks=pytest.mark.slow
        ),
        pytest.param("decoder", {"block": 8, "stages": 1}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("dot", {"block": 8, "stages": 3, "interleave": 2}, marks=pytest.mark.slow),
        pytest.param(
            "matmul",
            {"block": 8, "rows": 1, "columns": 2, "interleave": 3},
            marks=pytest.mark.slow,
        ),
        pytest.param("expander", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("encoder", {"block": 8, "rounding": "stochastic"}, marks=pytest.mark.slow),
        pytest.param("dot", {"block": 8, "blocks": "packed"}, marks=pytest.mark.slow),
        pytest.param("feedback_encoder", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("stochastic_encoder", {"block": 8, "dtype": "bf16"}, marks=pytest.mark.slow),
    ],
)
def test_every_unit_on_random_data(unit: str, parameters: dict[str, Any]) -> None:
    """The command of test_switching.py has random data in every run."""
    report = energy(unit, parameters, stimulus=RANDOM)
    used = report.measured
    assert used.per_item == pytest.approx(sum(used.parts.values()))
    assert list(used.parts) == list(PARTS)
    registers = parameters.get("stages", 0) + (unit in ("dot", "matmul", "stochastic_encoder"))
    assert (used.parts["clock"] > 0) == (used.parts["flip_flops"] > 0) == bool(registers)
    assert 0 < used.standard_error < 0.05 * used.per_item
    assert 0.05 < used.activity < 1
    latency = getattr(UNITS[unit].build(**parameters), "latency")  # noqa: B009
    assert used.cycles == SEQUENCES * (LENGTH - 1 - latency)
    assert used.operations == 8 * parameters.get("columns", 1)
    assert report.operation == UNITS[unit].operation
    assert report.relative == used.per_operation / report.reference.per_operation
    shown = report.to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["leaves_out"] == list(LEAVES_OUT)


@pytest.mark.slow
def test_a_block_of_another_size_than_axs6_has() -> None:
    report = energy("decoder", {"format": "hif4"}, stimulus=RANDOM)
    assert report.measured.operations == report.reference.operations == 64
    assert 0 < report.reference.standard_error < 0.05 * report.reference.per_item


def test_a_unit_without_data_does_the_same_in_every_sequence() -> None:
    used = energy("lfsr", {"block": 8, "random_bits": 2}, stimulus=RANDOM).measured
    assert used.standard_error < 1e-9 * used.per_item
    assert used.parts["inputs"] == 0
    assert min(used.parts[kind] for kind in ("gates", "flip_flops", "clock")) > 0
    assert used.activity > 0.1


@pytest.mark.slow
def test_two_runs_are_equal_and_data_matters() -> None:
    small = {"block": 8, "format": "mx4"}
    first, second = (energy("block_dot", small, stimulus=DIGITS) for _ in range(2))
    assert first == second
    random = energy("block_dot", small, stimulus=RANDOM)
    assert random.measured.per_item > 1.1 * first.measured.per_item


def with_capacitances(tiny: Path, head: str) -> Path:
    """The tiny library with 2 fF at each input of a gate, 3 fF and 4 fF at a flip-flop."""
    text = tiny.read_text().replace("direction : input;", "direction : input; capacitance : 0.002;")
    for pin, value in (("CK", "0.004"), ("D", "0.003")):
        text = re.sub(
            rf"(pin \({pin}\) {{ direction : input; capacitance :) 0.002", rf"\1 {value}", text
        )
    tiny.write_text(text.replace("library (tiny) {", f"library (tiny) {{ {head}", 1))
    return tiny


HEAD = "nom_voltage : 2.0; capacitive_load_unit (1, pf);"


def test_capacitances_of_a_library_by_hand(tiny: Path) -> None:
    read = capacitance.capacitances("generic", with_capacitances(tiny, HEAD))
    assert (read.unit, read.change) == ("fJ", 2.0)
    nets = find_nets(mapped_netlist(DESIGN, "t", liberty=tiny), read)
    assert sorted(nets.capacitances[nets.kinds == KINDS.index("inputs")]) == [0, 4, 4]
    assert sorted(nets.capacitances[nets.kinds == KINDS.index("gates")]) == [0, 3]
    assert nets.clock == 4


@pytest.mark.parametrize("reference_too", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_energy_on_a_library(
    reference_too: bool, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not reference_too:
        # Its multipliers are thousands of gates of this library. On sky130 it is measured.
        of_nothing = Consumption(1.0, 0.0, {}, 8, 0.0, 0, 0)
        monkeypatch.setattr("axs6.synth.energy._reference", lambda *given: of_nothing)
    liberty = with_capacitances(tiny, HEAD)
    parameters = {"block": 8, "format": "mx4", "stages": 1}
    report = energy("block_dot", parameters, liberty=liberty, stimulus=RANDOM)
    assert report.unit == "fJ"
    made = generate("block_dot", **parameters)
    flip_flops = mapped_netlist(made.verilog, made.module, liberty=liberty).count('"TINY_DFF"')
    # A change of 1 fF is 2 fJ, a clock pin has 4 fF and two changes.
    assert report.measured.parts["clock"] == 2 * 2.0 * 4 * flip_flops > 0


@pytest.mark.slow
@pytest.mark.parametrize("adder_cells", [False, True])
def test_energy_on_sky130(adder_cells: bool) -> None:
    report = energy(
        "block_dot",
        {"block": 8, "stages": 1},
        target="sky130",
        adder_cells=adder_cells,
        stimulus=RANDOM,
    )
    # A register for each bit of the sum and the exponent and for `valid`; 1.76 to 1.79 fF, 1.8 V
    registers = report.measured.parts["clock"] / 1.8**2
    assert 1.76 * (14 + 9 + 1) < registers < 1.79 * (16 + 9 + 1)
    assert 100 < report.measured.per_operation < 2000
    assert 0.2 < report.relative < 0.9


def test_a_library_without_capacitances_is_named(tiny: Path) -> None:
    tiny.write_text(tiny.read_text().replace("(tiny) {", f"(tiny) {{ {HEAD}", 1))
    with pytest.raises(SynthesisError) as caught:
        energy("block_dot", {"block": 8}, liberty=tiny, stimulus=RANDOM)
    found = re.fullmatch(
        rf"library {tiny} must give the capacitance of pin [AB] of TINY_\w+ and does not",
        str(caught.value),
    )
    assert found


def test_capacitances_in_other_words(tiny: Path) -> None:
    def pin(head: str, attributes: str) -> Pin:
        cell = f"cell (C) {{ pin (A) {{ direction : input; {attributes} }} }}"
        text = f"library (l) {{ nom_voltage : 1; capacitive_load_unit (10, ff); {head} {cell} }}"
        return capacitance.of_library(text, "l").pins["C"]["A"]

    assert pin("", "capacitance : 0.5;") == Pin("input", 5.0)
    assert pin("", "rise_capacitance : 0.2; fall_capacitance : 0.4;").capacitance == pytest.approx(
        3
    )
    assert pin("default_input_pin_cap : 0.3;", "").capacitance == pytest.approx(3)
    assert pin("default_input_pin_cap : 0.0;", "").capacitance is None


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "capacitive_load_unit (1, pf);",
            "library l must give nom_voltage, in volts, and does not",
        ),
        (
            "nom_voltage : 1;",
            "library l must give capacitive_load_unit as a number and one of pf, ff, nf, "
            "not nothing",
        ),
        (
            "nom_voltage : 1; capacitive_load_unit (1, mf);",
            "library l must give capacitive_load_unit as a number and one of pf, ff, nf, not 1mf",
        ),
    ],
)
def test_a_library_without_units_is_named(head: str, message: str) -> None:
    with pytest.raises(SynthesisError) as caught:
        capacitance.of_library(f"library (l) {{ {head} }}", "library l")
    assert str(caught.value) == message


def test_every_generic_gate_has_capacitances() -> None:
    for line in gates.genlib().splitlines():
        name, function = line.split()[1], line.split("=")[1].split(";")[0]
        if not name.startswith("_"):
            inputs = set(re.findall("[A-Z]", function))
            assert set(generic().pins[name]) == inputs | {"Y"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "ecp5"}, "energy needs gates, of generic, sky130 or a library, not ecp5"),
        ({"liberty": Path("/none.lib")}, "cannot read the library /none.lib: No such file"),
    ],
)
def test_bad_options_are_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SynthesisError, match=re.escape(message)):
        energy("block_dot", {"block": 8}, **options)


def test_real_data_keeps_its_order() -> None:
    """Rows of activations stay, rows of weights follow one another, block by block."""
    (product, *_) = work = products(DIGITS, 32)
    given = reference_items(work)
    assert given["a"].shape == (SEQUENCES, LENGTH, 32)
    a, b = (operand.int8 for operand in (product.a, product.b))
    blocks = a.shape[1]
    stream = [(a[m, k], b[n, k]) for m in range(40) for n in range(len(b)) for k in range(blocks)]
    first = [(x.tobytes(), y.tobytes()) for x, y in zip(given["a"][0], given["b"][0], strict=True)]
    every = [(x.tobytes(), y.tobytes()) for x, y in stream]
    assert any(every[start : start + LENGTH] == first for start in range(len(every) - LENGTH))


@pytest.mark.parametrize(
    ("unit", "format"),
    [
        ("encoder", "nvfp4"),
        ("decoder", "nvfp4"),
        ("decoder", "uint8"),
        ("dot", "vsq6"),
        ("matmul", "int8xfp8_e4m3"),
        ("decoder", "e4m3fn_e8m0_t0"),
    ],
)
def test_scales_of_tensors_and_channels_are_fields(unit: str, format: str) -> None:
    parameters = find(unit).parameters({"format": format})
    left, *_, right = operand_formats(parameters["format"]) * 2
    work = products(RANDOM, parameters["block"], (left, right))
    component: Any = find(unit).build(**parameters)
    given = unit_items(unit, parameters, work)
    expected = fields(component.i.payload.shape())
    assert set(given) == {field.name for field in expected}
    for field in expected:
        assert given[field.name].shape == (SEQUENCES, LENGTH, *field.shape)
    if unit == "matmul":
        sides = (work[0].a, work[0].b)
        a, b = (side.fields["outer"][0, 0].view(np.float32) for side in sides)
        assert (given["outer"] == (a * b).view(np.uint32)).all()
