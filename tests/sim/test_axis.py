"""The units on AXI4-Stream equal the golden model, and the bench finds those that do not."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.pack import packed_bytes
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.registry import BUS_UNITS
from axs6.hw.verilog import Generated, describe_streams, generate
from axs6.sim import simulate
from axs6.sim.bench.axis import Bus
from axs6.sim.bench.configuration import TESTS
from axs6.sim.regress import configurations, regress
from axs6.sim.tools import SIMULATORS, ToolError, check_simulator

Form = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def small(small_form: Form) -> Form:
    """Gives parameters of a small unit, in words."""
    return lambda unit: {**small_form(unit), "view": BEHAVIOUR}


def available(simulator: str) -> bool:
    try:
        check_simulator(simulator)
    except ToolError:
        return False
    return True


AVAILABLE = [name for name in SIMULATORS if available(name)]
QUICK = AVAILABLE[-1]
"""Icarus, where it is there: it builds in no time."""


def slow_unless(quick: bool) -> Any:
    return () if quick else pytest.mark.slow


@pytest.mark.parametrize(
    "simulator", [pytest.param(each, marks=slow_unless(each == QUICK)) for each in AVAILABLE]
)
@pytest.mark.parametrize(
    "unit", [pytest.param(each, marks=slow_unless(each != "axis_decoder")) for each in BUS_UNITS]
)
def test_units_equal_the_golden_model(unit: str, simulator: str, small: Form) -> None:
    """The decoder of another format is below, in every run."""
    outcome = regress(unit, small(unit), simulator=simulator, items=40, seed=1)
    assert outcome.failures == []
    assert [test.name for test in outcome.tests] == list(TESTS)
    assert outcome.items >= 40 + 10 + 4 * 32


OTHERS = [("axis_decoder", "int5_e5m0_t8")]
"""A unit in another format, which does not fill its bytes, that every run has.

What the simulators make of the structure of encoders is not for here: their words take less."""

MORE = [
    ("axis_encoder", "mx4"),
    *(("axis_decoder", name) for name in ("mx9", "mxfp4", "nvfp4", "uint8", "vsq6")),
    *(("axis_encoder", name) for name in ("mx9", "mxfp4", "mxfp8_e5m2")),
]


@pytest.mark.parametrize(
    ("unit", "name"),
    [*OTHERS, *(pytest.param(*each, marks=pytest.mark.slow) for each in MORE)],
)
def test_other_formats_equal_the_golden_model(unit: str, name: str) -> None:
    parameters = {"format": name, "align": 32, "dtype": "bf16", "stages": 1}
    if unit == "axis_encoder":
        # With few registers Icarus computes a signal anew for each path that leads to it.
        parameters |= {"view": "behaviour", "stages": 4}
    outcome = regress(unit, parameters, simulator=QUICK, items=40, seed=1)
    assert outcome.failures == []


@pytest.mark.parametrize(
    ("formats", "parameters"),
    [
        pytest.param(
            *("int4", {"block": 8, "accumulator": "exact", "align": 32, "view": "behaviour"}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("mx4xmx6", {"block": 64, "accumulator": "paper", "interleave": 3}),
            marks=pytest.mark.slow,
        ),
        pytest.param("nvfp4xe2m1fn_e4m3fn_t16", {"interleave": 2}, marks=pytest.mark.slow),
        pytest.param(
            *("mxfp4", {"accumulator": "blackwell_mx", "align": 32, "stages": 2}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_dot_products_of_other_formats_equal_the_golden_model(
    formats: str, parameters: dict[str, Any]
) -> None:
    given = {"format": formats, **parameters}
    assert regress("axis_dot", given, simulator=QUICK, items=40, seed=1).failures == []


@pytest.mark.slow
@pytest.mark.parametrize("unit", BUS_UNITS)
def test_every_configuration_equals_the_golden_model(unit: str) -> None:
    for parameters in configurations(unit, {}):
        failures = regress(unit, parameters, items=2000, seed=1).failures
        assert (parameters, failures) == (parameters, [])


def faulty(unit: str, given: dict[str, Any], **connections: str) -> Generated:
    """A unit with other connections of its ports than their own, as Verilog expressions."""
    made = generate(unit, **given)
    module = made.module
    head = made.verilog[made.verilog.index(f"module {module}(") :]
    body = head[: head.index("endmodule")]
    ports = re.findall(r"^  ((?:in|out)put) (\[\d+:0\] )?(\w+);", body, re.M)
    inner = re.sub(rf"\b{module}\b", "inner", made.verilog)
    listed = ", ".join(f"{way} {width}{name}" for way, width, name in ports)
    nets, outer, inside = [], [], []
    for way, width, name in ports:
        nets.append(f"wire {width}x_{name};")
        left, right = (name, f"x_{name}") if way == "output" else (f"x_{name}", name)
        outer.append(f"assign {left} = {connections.get(name, right)};")
        inside.append(f".{name}(x_{name})")
    lines = "\n".join([*nets, *outer, f"inner unit({', '.join(inside)});"])
    waited = "reg waited = 0; always @(posedge clk) waited <= m_axis_tvalid && !m_axis_tready;"
    outside = f"module {module}({listed});\n{waited}\n{lines}\nendmodule\n"
    return replace(made, verilog=inner + outside)


FAULTS = {
    "loses tlast": (
        *("axis_decoder", {"m_axis_tlast": "x_m_axis_tlast && !waited"}),
        "the beat changed before it was taken",
    ),
    "drops beats": ("axis_decoder", {"s_axis_tready": "1'b1"}, "the golden model gives"),
    "one tlast": ("axis_dot", {"s_axis_b_tlast": "s_axis_a_tlast"}, "the golden model gives"),
    "no tlast": ("axis_decoder", {"m_axis_tlast": "1'b0"}, "never came, or without tlast"),
    "no tuser": ("axis_decoder", {"m_axis_tuser": "1'b0"}, "user is 0x0"),
    "waits": ("axis_decoder", {"m_axis_tvalid": "x_m_axis_tvalid && m_axis_tready"}, "never came"),
    "no reset": ("axis_decoder", {"rst": "1'b0"}, "the golden model gives"),
}
QUICK_FAULTS = ("drops beats",)


@pytest.mark.parametrize(
    ("unit", "connections", "reason"),
    [
        pytest.param(*fault, id=name, marks=slow_unless(name in QUICK_FAULTS))
        for name, fault in FAULTS.items()
    ],
)
def test_a_faulty_unit_fails(
    unit: str, connections: dict[str, str], reason: str, small: Form
) -> None:
    made = faulty(unit, small(unit), **connections)
    outcome = regress(unit, small(unit), simulator=QUICK, items=40, generated=made)
    assert not outcome.passed
    assert any(reason in text for _, text in outcome.failures), outcome.failures


@pytest.mark.slow
def test_the_unit_without_faults_passes(small: Form) -> None:
    given = small("axis_decoder")
    made = faulty("axis_decoder", given)
    outcome = regress("axis_decoder", given, simulator=QUICK, items=40, generated=made)
    assert outcome.failures == []


@pytest.mark.parametrize("mode", ["dense", "high_precision"])
@pytest.mark.parametrize("align", [1, 32])
@pytest.mark.parametrize("block", [8, 16, 32])
def test_beats_of_blocks_are_their_packed_bytes(block: int, align: int, mode: str) -> None:
    unit = BUS_UNITS["axis_encoder"]
    parameters = unit.parameters({"block": block, "align": align, "mode": mode})
    x = np.random.default_rng(0).standard_normal((5, block)).astype(np.float32)
    zeros = np.zeros(5, np.uint8)
    items = {"values": x.view(np.uint32), "last": zeros, "user": zeros}
    bus = Bus.of({"streams": describe_streams(unit.build(**parameters))}, "m_axis")
    length = packed_bytes(block=block, align=align)
    words = bus.words(unit.golden(items, parameters))
    beats = b"".join(word.to_bytes(length, "little") for word in words)
    assert beats == axs6.pack(axs6.encode(x, block=block, mode=mode), align=align)


def test_the_worked_example_of_the_docs() -> None:
    """docs/axis.md spells out these beats."""
    x = np.float32([[1, -0.5, 0.25, 0, 0, 0, 0, 0.04]])
    data = axs6.pack(axs6.encode(x, block=8))
    assert data.hex(" ") == "00 02 10 4a 00 00 00 04"


def test_units_on_a_bus_are_not_simulated() -> None:
    message = "axis_dot is on AXI4-Stream; unit must be one of block_dot, .*, matmul, .* here"
    with pytest.raises(ValueError, match=message):
        simulate("axis_dot", {})
