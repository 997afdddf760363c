"""The two compiled simulators agree in every cycle, and with the golden model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal, ValueLike, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.registry import UNITS, find
from axs6.sim.batch import engine as batch
from axs6.sim.batch.engine import BatchModel
from axs6.sim.compiled import Stall
from axs6.sim.cxxrtl import engine as cxxrtl
from axs6.sim.cxxrtl.engine import CxxrtlModel
from axs6.sim.cxxrtl.source import design
from axs6.sim.tools import ToolError
from axs6.sim.trace import HANDSHAKE, Trace
from axs6.sim.words import from_words, to_words

LARGE = ("feedback_encoder", "stochastic_encoder", "matmul")
"""Units over which all takes 20 s and more."""

ALIKE = ("block_dot", "lfsr", "expander", "encoder", "choice_encoder", "hadamard")
"""Units whose like every run has: the first below, with right cells beside wrong ones, and the
others are gates alone without stages, as the decoder is."""

LATE = (*LARGE, *ALIKE)

CASES = [
    pytest.param(name, {"block": 8, **combination}, most, marks=() if few else pytest.mark.slow)
    for name, unit in UNITS.items()
    for combinations in [unit.combinations({"block": 8})]
    for number, combination in enumerate(combinations)
    for most in ((False, True) if len(combinations) == 1 else (number % 2 == 1,))
    for few in [number == 0 and not most and name not in (*LATE, "dot")]
] + [
    pytest.param("matmul", {"block": 8, "view": BEHAVIOUR}, False, marks=pytest.mark.slow),
    pytest.param(
        *("dot", {"block": 8, "view": BEHAVIOUR, "format": "int4"}, False), marks=pytest.mark.slow
    ),
]
"""Combinations of parameters with no stages and the most, in turn; at once the first of each unit
without stages; dot products, whose registers hold sums, take a quarter of a minute."""

DEEPEST = {"feedback_encoder": 12}
"""Stages in place of the most, over which g++ would take minutes."""
STALLS = [None, Stall(0.5, 0.5, seed=3), Stall(0.0, 0.8, seed=4), Stall(0.8, 0.1, seed=5)]
CYCLES = 60_000
"""Room in the traces; no run here is longer."""

Items = dict[str, np.ndarray]


def difference(trace: Trace, reference: Trace, copy: int) -> str | None:
    """Where a copy first differs from the reference; payloads count where they are valid."""
    cycles, valid = len(reference.handshake["o_valid"]), reference.handshake["o_valid"][:, 0]
    found = []
    for part, right in ((trace.handshake, reference.handshake), (trace.payload, reference.payload)):
        for name, values in right.items():
            differs = (part[name][:cycles, copy] != values[:, 0]).reshape(cycles, -1).any(axis=1)
            if name not in HANDSHAKE:
                differs &= valid
            found += [(int(cycle), name) for cycle in np.flatnonzero(differs)[:1]]
    return "{1} in cycle {0}".format(*min(found)) if found else None


def compare(
    model: batch.ComponentModel,
    reference: cxxrtl.ComponentModel,
    items: Items,
    stall: Stall | None = None,
) -> str | None:
    """The first difference of any copy from a run of the reference on that copy's items."""
    trace = model.run(items, stall, trace=CYCLES).trace
    (share,) = model._share_out(len(next(iter(items.values()))), items, 1)
    for copy in np.flatnonzero(share.input_count):
        rows = share.input_first[copy] + np.arange(share.input_count[copy]) * share.stride
        own = {name: values[rows] for name, values in items.items()}
        done = reference.run(own, stall, copy=copy, trace=CYCLES)
        assert done.cycles == len(done.trace.handshake["o_valid"]) < CYCLES
        if found := difference(trace, done.trace, copy):
            return found
    return None


def some_items(unit: str, parameters: dict[str, Any]) -> Items:
    """Corner cases, and random items behind them."""
    corners = find(unit).corners(parameters)
    more = find(unit).random(parameters, np.random.default_rng(2), 1000)
    return {name: np.concatenate([corners[name], more[name]]) for name in corners}


@pytest.mark.parametrize(("unit", "parameters", "most"), CASES)
def test_every_unit_is_the_same_in_every_cycle(
    unit: str, parameters: dict[str, Any], most: bool
) -> None:
    entry = UNITS[unit]
    last = {k: values[-1] for k, values in entry.samples.items() if entry.takes(k, parameters)}
    parameters = entry.parameters({**parameters, **last})
    deepest = DEEPEST.get(unit) or UNITS[unit].most_stages(parameters)
    parameters["stages"] = deepest if most else 0
    items = some_items(unit, parameters)
    expected = UNITS[unit].golden(items, parameters)
    model, reference = BatchModel(unit, **parameters), CxxrtlModel(unit, **parameters)
    for stall in STALLS:
        assert compare(model, reference, items, stall) is None
        for outputs in (model.run(items, stall).outputs, reference.run(items, stall).outputs):
            assert outputs.keys() == expected.keys()
            for name, values in expected.items():
                assert np.array_equal(outputs[name], values), (name, stall)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["block_dot", "dot"])
def test_full_blocks_are_the_same_in_every_cycle(unit: str) -> None:
    parameters = UNITS[unit].parameters({"stages": 2})
    items = find(unit).random(parameters, np.random.default_rng(3), 2000)
    model, reference = BatchModel(unit, **parameters), CxxrtlModel(unit, **parameters)
    assert compare(model, reference, items, STALLS[1]) is None


def test_another_number_of_stages_is_found() -> None:
    items = some_items("block_dot", {"block": 8})
    model, reference = BatchModel("block_dot", block=8, stages=2), CxxrtlModel("block_dot", block=8)
    found = compare(model, reference, items)
    assert found is not None
    assert found.endswith("in cycle 0")


@pytest.mark.parametrize(
    ("right", "wrong", "field"), [("$add", "$sub", "exponent"), ("$and", "$or", "sum")]
)
def test_a_wrong_cell_is_found(
    right: str, wrong: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kind of cell in the batch simulator's netlist becomes another."""
    yosys_json, component = batch.yosys_json, UNITS["block_dot"].build(block=8)
    reference = CxxrtlModel("block_dot", block=8)
    items = some_items("block_dot", {"block": 8})
    correct = batch.ComponentModel(batch.component_source(component), "correct")
    assert compare(correct, reference, items) is None
    monkeypatch.setattr(
        batch, "yosys_json", lambda component: yosys_json(component).replace(right, wrong)
    )
    faulty = batch.ComponentModel(batch.component_source(component), "faulty")
    found = compare(faulty, reference, items)
    assert found is not None
    assert found.startswith(f"{field} in cycle")


class Register(wiring.Component):
    """A 6-bit number in one register, which drives the output port itself.

    Args:
        fault: "ready" takes items while the output waits, "repeat" gives an item until another
            comes, "dead" takes none; "" is right.
    """

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        layout = data.StructLayout({"value": signed(6)})
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ready = (~self.o.valid | self.o.ready | (self.fault == "ready")) & (self.fault != "dead")
        m.d.comb += self.i.ready.eq(ready)
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid | (self.o.valid & (self.fault == "repeat")))
            with m.If(self.i.valid):
                m.d.sync += self.o.payload.eq(self.result(m))
        return m

    def result(self, m: Module) -> ValueLike:
        return self.i.payload.value


class Prefixes(Register):
    """Bit i of the result is the parity of bits 0 to i: a signal whose bits feed one another."""

    def result(self, m: Module) -> ValueLike:
        chain = Signal(6)
        value = self.i.payload.as_value()
        m.d.comb += chain.eq(Cat(value[0], chain[:5] ^ value[1:]))
        return chain


NUMBERS = {"value": np.random.default_rng(1).integers(-32, 32, 300)}


def register(component: Register) -> cxxrtl.ComponentModel:
    return cxxrtl.ComponentModel(design(component, "register"), "register")


def test_signed_fields_and_ports_that_are_registers() -> None:
    for stall in STALLS:
        outputs = register(Register()).run(NUMBERS, stall).outputs
        assert outputs["value"].dtype == np.int8
        assert np.array_equal(outputs["value"], NUMBERS["value"])


@pytest.mark.filterwarnings("ignore:Design contains")
def test_feedback_among_the_bits_of_a_signal_is_settled() -> None:
    bits = NUMBERS["value"][:, None] >> np.arange(6) & 1
    expected = (np.cumsum(bits, axis=1) & 1) @ [1, 2, 4, 8, 16, -32]
    outputs = register(Prefixes()).run(NUMBERS, STALLS[1]).outputs
    assert np.array_equal(outputs["value"], expected)


def test_a_lost_item_is_found() -> None:
    """The faulty one is right for as long as nothing stalls, and stops without its outputs."""
    model = batch.ComponentModel(batch.component_source(Register("ready")), "faulty")
    reference = register(Register())
    assert compare(model, reference, NUMBERS) is None
    with pytest.raises(ToolError, match="faulty stopped: nothing moved for 10000 cycles"):
        model.run(NUMBERS, STALLS[1])
    faulty = register(Register("ready"))
    with pytest.raises(ToolError, match="register stopped: nothing moved for 10000 cycles"):
        faulty.run(NUMBERS, STALLS[1])


def test_outputs_behind_the_last_one_are_found() -> None:
    with pytest.raises(ToolError, match="register gave too many outputs for its items"):
        register(Register("repeat")).run({"value": NUMBERS["value"][:1]})


def test_a_unit_that_takes_nothing_is_found() -> None:
    with pytest.raises(ToolError, match="register stopped: nothing moved for 10000 cycles"):
        register(Register("dead")).run(NUMBERS)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_any_number_of_items(count: int) -> None:
    run = register(Register()).run({"value": NUMBERS["value"][:count]}, trace=100)
    assert run.outputs["value"].tolist() == NUMBERS["value"][:count].tolist()
    assert run.cycles == (count + 1 if count else 0)
    assert len(run.trace.handshake["i_ready"]) == run.cycles


def read_vcd(text: str) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Names of the signals by scope, each with its identifier, and all values at each time."""
    header, body = text.split("$enddefinitions $end\n")
    assert header.startswith("$timescale 1 ns $end\n")
    scopes: list[str] = []
    names = {}
    for line in header.splitlines():
        words = line.split()
        if words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            names[".".join([*scopes, words[4]])] = words[3]
    assert not scopes
    values: dict[str, str] = {}
    times = {}
    for line in body.splitlines():
        if line.startswith("#"):
            values = dict(values)
            times[int(line[1:])] = values
        elif line.startswith("b"):
            bits, identifier = line[1:].split(" ")
            values[identifier] = bits
        else:
            values[line[1:]] = line[0]
    return names, times


def test_a_waveform_shows_what_the_trace_shows(tmp_path: Path) -> None:
    parameters = {"block": 8, "stages": 3}
    items = find("block_dot").random(parameters, np.random.default_rng(1), 100)
    model = CxxrtlModel("block_dot", **parameters)
    first, end = 20, 60
    path = tmp_path / "wave.vcd"
    run = model.run(items, STALLS[1], trace=CYCLES, vcd=path, window=(first, end))
    assert list(tmp_path.iterdir()) == [path]
    names, times = read_vcd(path.read_text())
    halves = [10 * cycle + half for cycle in range(first, end) for half in (0, 5)]
    assert list(times) == [*halves, 10 * end]
    outputs = {name: values[:, 0] for name, values in run.trace.payload.items()}
    words = to_words(outputs, model.outputs)
    valid_cycles = 0
    for time in halves:
        cycle, shown = time // 10, times[time]
        assert shown[names["axs6_block_dot.clk"]] == str(int(time % 10 == 0))
        for name in HANDSHAKE:
            port = names[f"axs6_block_dot.{name.replace('_', '__')}"]
            assert shown[port] == str(int(run.trace.handshake[name][cycle, 0])), (name, cycle)
        if run.trace.handshake["o_valid"][cycle, 0]:
            valid_cycles += 1
            assert int(shown[names["axs6_block_dot.o_payload"]], 2) == words[cycle]
    assert valid_cycles > 20
    assert any(name.startswith("axs6_block_dot.add_pairs0.") for name in names)


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        ("block_dot", {"block": 8}),
        pytest.param("matmul", {"block": 8, "rows": 1, "columns": 2}, marks=pytest.mark.slow),
        pytest.param("dot", {"block": 8, "format": "nvfp4", "stages": 1}, marks=pytest.mark.slow),
    ],
)
def test_a_waveform_has_the_fields_of_payloads_by_name(
    unit: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    settings = find(unit).simulated(parameters)
    items = find(unit).random(settings, np.random.default_rng(1), 20)
    model = CxxrtlModel(unit, **parameters)
    model.run(items, vcd=tmp_path / "wave.vcd", window=(0, 20))
    names, times = read_vcd((tmp_path / "wave.vcd").read_text())
    top = f"axs6_{unit}"
    changing = set()
    for side, fields in {"i": model.inputs, "o": model.outputs}.items():
        for shown in times.values():
            word = int(shown[names[f"{top}.{side}_payload"]], 2)
            for name, values in from_words([word], fields).items():
                field = next(field for field in fields if field.name == name)
                for place, value in np.ndenumerate(values[0]):
                    path = "".join(f"[{index}]" for index in place)
                    found = int(shown[names[f"{top}.{side}.payload.{name}{path}"]], 2)
                    assert found == int(value) & (1 << field.width) - 1
                    changing.add((side, name, place, found))
    assert len(changing) > 20 * len(model.inputs)


def test_a_waveform_ends_with_the_run(tmp_path: Path) -> None:
    register(Register()).run(NUMBERS, vcd=tmp_path / "wave.vcd", window=(298, 10_000))
    _, times = read_vcd((tmp_path / "wave.vcd").read_text())
    assert list(times) == [2980, 2985, 2990, 2995, 3000, 3005, 3010]


def test_waveforms_that_cannot_be_are_refused(tmp_path: Path) -> None:
    model = register(Register())
    path = tmp_path / "wave.vcd"
    for window in ((5, 5), (-1, 5)):
        with pytest.raises(ValueError, match="window must be two rising cycles from 0, not"):
            model.run(NUMBERS, vcd=path, window=window)
    with pytest.raises(ValueError, match=r"window \(301, 302\) begins after the run's 301 cycles"):
        model.run(NUMBERS, vcd=path, window=(301, 302))
    with pytest.raises(OSError, match=r"cannot write to .*/no/wave.vcd: No such file"):
        model.run(NUMBERS, vcd=tmp_path / "no" / "wave.vcd")
    with pytest.raises(OSError, match="cannot write to /dev/full: No space left on device"):
        model.run(NUMBERS, vcd=Path("/dev/full"))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"the CXXRTL simulator needs g\+\+ on PATH"):
        CxxrtlModel("block_dot", block=8)


def test_a_missing_yosys_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "javascript")
    with pytest.raises(ToolError, match="the simulator needs Yosys: Could not find"):
        CxxrtlModel("block_dot", block=16).build()
