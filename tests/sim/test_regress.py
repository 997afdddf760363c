"""The bench must pass on what the project generates and fail on everything that is wrong."""

import inspect
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest

from axs6.golden.formats import formats
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.hw.core import ranks
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.fp32.divide import Reciprocal
from axs6.hw.registry import UNITS, find
from axs6.hw.verilog import Generated, generate
from axs6.sim.bench.configuration import LEAST_STALLED, TESTS
from axs6.sim.regress import configurations, junit, read_results, regress
from axs6.sim.tools import ToolError

FEW_CORNERS = {
    "dot": {"format": "int4", "accumulator": "fp32", "block": 4},
    "encoder": {"format": "mxfp4", "dtype": "bf16"},
}
"""Parameters of units whose corners Icarus takes long over."""

ON_ICARUS = ("dot",)
"""Units that Icarus has in every run: one that adds up."""

CASES = [
    ("encoder", {"block": 8, "dtype": "bf16", "mode": "sparse", "stages": 3}),
]
"""A unit that Verilator has in every run; one that adds up is in tests/hw/test_ports.py. The batch
simulator has all units, and every value of each parameter."""
ITEMS = 1_000
WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
QUICK = "verilator" if shutil.which("iverilog") is None else "icarus"
"""What builds small units sooner, for tests of the bench rather than of a unit."""

WORDS: dict[str, Any] = {"block": 8, "view": BEHAVIOUR}


@pytest.mark.parametrize(("unit", "parameters"), CASES)
def test_units_equal_the_golden_model_on_verilator(unit: str, parameters: dict[str, Any]) -> None:
    items = ITEMS if unit != "matmul" else ITEMS // 10
    outcome = regress(unit, parameters, items=items, seed=1)
    assert (parameters, outcome.failures) == (parameters, [])
    assert [test.name for test in outcome.tests] == list(TESTS)
    assert outcome.items > items * 5 // 4


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_every_configuration_equals_the_golden_model_on_verilator(unit: str) -> None:
    """In one test a unit: what all configurations are is not found out in every run."""
    for parameters in configurations(unit, {}):
        test_units_equal_the_golden_model_on_verilator(unit, parameters)


@WITH_ICARUS
@pytest.mark.parametrize(
    "unit",
    [pytest.param(unit, marks=[pytest.mark.slow] * (unit not in ON_ICARUS)) for unit in UNITS],
)
def test_units_equal_the_golden_model_on_icarus(unit: str) -> None:
    entry = UNITS[unit]
    samples = {name: each[1] for name, each in entry.samples.items() if entry.takes(name, {})}
    small = entry.simulated({"block": 8, **samples, **FEW_CORNERS.get(unit, {})})
    # Between registers Icarus computes a signal anew for each path that leads to it.
    stages = min(24, UNITS[unit].most_stages(small))
    outcome = regress(unit, {**small, "stages": stages}, simulator="icarus", items=200)
    assert outcome.failures == []
    assert [test.name for test in outcome.tests] == list(TESTS)


DECODED = [
    ("icarus", {"format": "mx4", "block": 8, "dtype": "bf16", "blocks": "packed"}),
]
"""A decoder of packed blocks; every run has decoders in simulators in tests/hw/test_ports.py."""

EVERY_DECODER = [
    (simulator, {"format": name, "block": 16, "dtype": dtype})
    for simulator, dtype in (("verilator", "fp32"), ("icarus", "bf16"))
    for name in formats()
] + [("verilator", {"format": "mxfp4", "block": 8, "dtype": "bf16", "stages": 2})]


@WITH_ICARUS
@pytest.mark.parametrize(
    ("simulator", "parameters"),
    [pytest.param(*each, marks=pytest.mark.slow) for each in (*DECODED, *EVERY_DECODER)],
)
def test_decoders_of_formats_equal_the_golden_model(
    simulator: str, parameters: dict[str, Any]
) -> None:
    outcome = regress("decoder", parameters, simulator=simulator, items=200)
    assert outcome.failures == []
    assert [test.name for test in outcome.tests] == list(TESTS)


DIVIDED = {"format": "sm4dz_e8m0f_t16", "block": 8, "view": BEHAVIOUR}
"""A dot product that is divided by 49."""


@WITH_ICARUS
@pytest.mark.slow
@pytest.mark.parametrize("unit", ["dot", "matmul"])
@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
@pytest.mark.parametrize("accumulator", ["fp32", "paper", "exact", "hopper", "fp32,promote=2"])
def test_dot_products_over_another_denominator_equal_the_golden_model(
    unit: str, simulator: str, accumulator: str
) -> None:
    given = {**DIVIDED, "accumulator": accumulator, "stages": 3}
    outcome = regress(unit, given, simulator=simulator, items=50)
    assert outcome.failures == []
    assert [test.name for test in outcome.tests] == list(TESTS)


def test_configurations_use_every_value_and_combination() -> None:
    for name, unit in UNITS.items():
        chosen = configurations(name, {})
        assert chosen[0] == unit.defaults
        for combination in unit.combinations({}):
            assert any(combination.items() <= each.items() for each in chosen)
        assert unit.most_stages({}) >= 2
        assert any(each["stages"] == unit.most_stages(each) for each in chosen)
        for parameter, values in unit.samples.items():
            assert {each[parameter] for each in chosen} == set(values)


def test_parameters_that_are_not_given_have_their_defaults_or_vary() -> None:
    (single,) = configurations("block_dot", {"stages": 2})
    assert single == {**UNITS["block_dot"].defaults, "stages": 2}
    varied = configurations("block_dot", {"stages": 2}, vary=True)
    assert {each["block"] for each in varied} == set(MODE_BLOCKS)
    assert {each["stages"] for each in varied} == {2}
    assert configurations("dot", {}) == configurations("dot", {}, vary=True)


def wrong(unit: str, promised: dict[str, Any], made: dict[str, Any]) -> Generated:
    """Verilog of one configuration under the manifest of another."""
    return replace(generate(unit, **promised), verilog=generate(unit, **made).verilog)


@pytest.mark.parametrize(
    ("unit", "promised", "made", "failing", "reason"),
    [
        pytest.param(  # the next test has the same fault
            "encoder",
            {"dtype": "bf16", "rounding": "nearest"},
            {"dtype": "bf16", "rounding": "toward_zero"},
            set(TESTS),
            "the golden model gives",
            marks=pytest.mark.slow,
        ),
        (
            "block_dot",
            {"stages": 1},
            {"stages": 2},
            {"full_rate", "one_at_a_time"},
            r"latency \{?2\}?( where no item follows)?, not",
        ),
    ],
)
def test_a_unit_that_is_not_what_it_promises_fails(
    unit: str,
    promised: dict[str, Any],
    made: dict[str, Any],
    failing: set[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whatever the user's Python leaves out, the bench has its assertions.
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    promised, made = WORDS | promised, WORDS | made
    generated = wrong(unit, promised, made)
    outcome = regress(unit, promised, items=100, generated=generated, simulator=QUICK)
    assert not outcome.passed
    assert {name for name, _ in outcome.failures} == failing
    assert all(re.search(reason, text) for _, text in outcome.failures)


def test_a_failure_says_how_many_outputs_differ() -> None:
    promised, made = ({**WORDS, "rounding": each} for each in ("nearest", "toward_zero"))
    generated = wrong("encoder", promised, made)
    given: dict[str, Any] = {"items": 500, "simulator": QUICK, "test": "full_rate"}
    outcome = regress("encoder", promised, generated=generated, **given)
    items = find("encoder").random(
        UNITS["encoder"].parameters(promised), np.random.default_rng(0), 500
    )
    right, came = (
        UNITS["encoder"].golden(items, UNITS["encoder"].parameters(each))
        for each in (promised, made)
    )
    differ = sum((right[name] != came[name]).reshape(500, -1).any(1) for name in right) > 0
    (reason,) = (reason for name, reason in outcome.failures if name == "full_rate")
    assert f"({differ.sum()} of 500 outputs differ)" in reason
    assert f"output {differ.argmax()}: " in reason


CORRECT = {
    "LAST": "7",
    "NEGATE": "-$signed({1'b0, product})",
    "READY": "!full || o_ready",
    "LOAD": "i_ready && i_valid",
    "VALID": "full",
    "PAYLOAD": "held",
    "KEEP": "i_valid",
    "RESET": "rst",
}

BEHAVIOURAL = """
module axs6_block_dot(
  input clk, input rst,
  input i_valid, output i_ready, input [111:0] i_payload,
  output o_valid, input o_ready, output [22:0] o_payload);
  reg full = 0;
  reg [22:0] held = 0;
  reg signed [13:0] sum;
  reg [9:0] product;
  integer lane;
  assign i_ready = $READY;
  assign o_valid = $VALID;
  assign o_payload = $PAYLOAD;
  always @* begin
    sum = 0;
    product = 0;
    for (lane = 0; lane <= $LAST; lane = lane + 1) begin
      product = i_payload[8 + 6 * lane +: 5] * i_payload[64 + 6 * lane +: 5];
      if (i_payload[13 + 6 * lane] ^ i_payload[69 + 6 * lane])
        sum = sum + ($NEGATE);
      else
        sum = sum + product;
    end
  end
  always @(posedge clk) begin
    if (i_ready) full <= $KEEP;
    if ($LOAD) held <= {{1'b0, i_payload[7:0]} + {1'b0, i_payload[63:56]}, sum};
    if ($RESET) full <= 0;
  end
endmodule
"""


def behavioural(**faults: str) -> Generated:
    """A block dot product written by hand, with faults in place of some of its expressions."""
    text = Template(BEHAVIOURAL).substitute({**CORRECT, **faults})
    lint = "/* verilator lint_off WIDTH */\n"
    return replace(generate("block_dot", block=8, stages=1), verilog=lint + text)


FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "lane": ({"LAST": "6"}, "sum is"),
    "negation": ({"NEGATE": "~$signed({1'b0, product})"}, "sum is"),
    "bit": ({"PAYLOAD": "held & 23'h3fffff"}, "exponent is"),
    "ready": ({"READY": "1'b1"}, "payload changed from"),
    "load": ({"LOAD": "i_valid"}, "payload changed from"),
    "valid_waits": ({"VALID": "full && o_ready", "READY": "o_ready"}, "input 0 was not taken"),
    "repeats": ({"KEEP": "i_valid || full"}, "the golden model gives"),
    "reset": ({"RESET": "0"}, "the golden model gives"),
    "drops": ({"KEEP": "i_valid && full"}, "outputs never came"),
}
"""Faults of the hand-written unit, and what the bench says of them."""

ALIKE = ("negation", "bit", "load", "repeats", "reset")
"""Those of the same kind as another: values that are wrong, a payload that changes."""


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.slow] * (name in ALIKE))
        for name, each in FAULTS.items()
    ],
)
def test_a_faulty_unit_fails(faults: dict[str, str], reason: str) -> None:
    simulator = "verilator" if "LAST" in faults else QUICK
    parameters, generated = {"block": 8, "stages": 1}, behavioural(**faults)
    outcome = regress("block_dot", parameters, items=300, generated=generated, simulator=simulator)
    assert not outcome.passed
    assert any(reason in text for _, text in outcome.failures), outcome.failures


@pytest.mark.slow  # tests/hw/test_wrong_dots.py has quick ones of the kind
def test_a_wrong_factor_in_the_division_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {**WORDS, "stages": 4, "accumulator": "paper"}
    promised = generate("dot", **parameters)
    monkeypatch.setattr(Reciprocal, "factors", ((4, 10), (9, 20), (18,)))
    faulty = replace(promised, verilog=generate("dot", **parameters).verilog)
    given: dict[str, Any] = {"items": 10, "simulator": QUICK, "test": "corners"}
    outcome = regress("dot", parameters, generated=faulty, **given)
    assert [name for name, _ in outcome.failures] == ["corners"]


def test_a_total_that_survives_a_reset_fails() -> None:
    few = {**WORDS, "format": "int4", "accumulator": "paper"}
    made = generate("dot", **few)
    waiting = made.verilog.index("= valid1;")
    reset = made.verilog.index("if (rst)", waiting)
    without = made.verilog[reset:].replace("if (rst)", "if (1'b0)", 1)
    faulty = replace(made, verilog=made.verilog[:reset] + without)
    # On Icarus the total that nothing resets is unknown from the start: other tests fail too.
    outcome = regress("dot", few, items=10, generated=faulty)
    assert [name for name, _ in outcome.failures] == ["reset_in_flight"]


@pytest.mark.parametrize("unit", ["dot", pytest.param("axis_dot", marks=pytest.mark.slow)])
def test_a_result_that_is_kept_back_fails(unit: str) -> None:
    given = {**WORDS, "interleave": 2}
    made = generate(unit, **given)
    text, count = re.subn(r"\.waits\(\w+\)", ".waits(1'b0)", made.verilog)
    assert count == 1
    faulty = replace(made, verilog=text)
    regressed: dict[str, Any] = {"items": 20, "simulator": QUICK, "test": "one_at_a_time"}
    outcome = regress(unit, given, generated=faulty, **regressed)
    ((name, reason),) = outcome.failures
    assert name == "one_at_a_time"
    assert "never came" in reason


def test_a_run_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(ToolError, match=rf"{QUICK} took longer than 0.1 s to test axs6_block_dot"):
        regress("block_dot", WORDS, seconds=0.1, simulator=QUICK)


@pytest.mark.parametrize(
    "simulator",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != QUICK))
        for name in sorted({"verilator", QUICK})
    ],
)
def test_the_unit_without_faults_passes(simulator: str) -> None:
    parameters, given = {"block": 8, "stages": 1}, {"items": 300, "simulator": simulator}
    assert regress("block_dot", parameters, generated=behavioural(), **given).passed


@pytest.mark.parametrize(
    "module",
    [
        "axs6.sim.bench.checker",
        pytest.param("axs6.sim.bench.no_such_module", marks=pytest.mark.slow),
    ],
)
def test_a_run_without_tests_or_results_is_a_failure(module: str) -> None:
    """cocotb leaves no results file where it finds no tests, nor where it cannot import them."""
    outcome = regress("block_dot", WORDS, test_module=module, simulator=QUICK)
    assert outcome.tests == ()
    assert not outcome.passed
    ((name, reason),) = outcome.failures
    assert name == "run"
    assert reason.startswith("the simulator left no results file (")


def test_a_results_file_without_tests_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    path.write_text("<testsuites><testsuite/></testsuites>")
    assert read_results(path) == ((), "no tests were run")


def test_a_broken_results_file_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    path.write_text("<testsuites><testsuite>")
    tests, failure = read_results(path)
    assert tests == ()
    assert failure is not None
    assert failure.startswith("the results file cannot be read")


def test_a_skipped_test_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    path.write_text('<testsuites><testcase name="a" time="1"><skipped/></testcase></testsuites>')
    tests, failure = read_results(path)
    assert failure is None
    assert tests[0].failure == "skipped"


@pytest.mark.slow  # the command's test writes such a file in every run
def test_junit_counts_tests_and_failures() -> None:
    outcomes = [
        regress("block_dot", WORDS, items=20, simulator=QUICK),
        regress("block_dot", WORDS, test_module="axs6.sim.bench.no_such_module", simulator=QUICK),
    ]
    suites = ET.fromstring(junit(outcomes)).findall("testsuite")
    assert [(s.get("tests"), s.get("failures")) for s in suites] == [("6", "0"), ("1", "1")]
    failure = suites[1].find("testcase/failure")
    assert failure is not None
    assert failure.get("message", "").startswith("the simulator left no results file")


SPARE_FAULTS = {
    "kept_twice": ("(valid | waiting) & held & ~moves", "(valid | waiting) & ~moves"),
    "kept_for_ever": ("(valid | waiting) & held & ~moves", "(valid | waiting) & held"),
    "forgotten": ("(valid | waiting) & held & ~moves", "valid & held & ~moves"),
    "overwritten": ("with m.If(valid & ready):", "with m.If(valid):"),
    "passed_over": ("Mux(waiting, spare, item)", "Mux(waiting & valid, spare, item)"),
    "dropped": ("held.eq(valid | waiting)", "held.eq(valid)"),
    "taken_twice": ("ready.eq(~waiting)", "ready.eq(~waiting | moves)"),
    "never_filled": ("m.If(moves | ~held)", "m.If(moves)"),
}
"""Expressions of a rank with a spare register, and faults in place of them."""

SUBTLE = "passed_over"
"""A fault that shows in few states; the others are slow."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=[pytest.mark.slow] * (fault != SUBTLE)) for fault in SPARE_FAULTS],
)
def test_few_items_find_a_fault_in_a_spare_register(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = {**WORDS, "stages": 9}
    right = generate("block_dot", **parameters)
    source = inspect.getsource(ranks.add_rank_with_spare)
    assert SPARE_FAULTS[fault][0] in source
    planted: dict[str, Any] = {}
    exec(source.replace(*SPARE_FAULTS[fault]), vars(ranks), planted)
    monkeypatch.setitem(ranks.ADD_RANK, (False, True), planted["add_rank_with_spare"])
    faulty = generate("block_dot", **parameters)
    assert faulty.verilog != right.verilog
    given: dict[str, Any] = {"items": 150, "simulator": QUICK, "test": "random_stalls"}
    assert regress("block_dot", parameters, generated=faulty, **given).failures


def test_the_spare_register_passes() -> None:
    given: dict[str, Any] = {"items": 150, "simulator": QUICK, "test": "random_stalls"}
    outcome = regress("block_dot", {**WORDS, "stages": 9}, **given)
    assert outcome.failures == []
    assert outcome.items == LEAST_STALLED


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(ValueError, match="items must be an integer of at least 1, not 0"):
        regress("block_dot", items=0)
    with pytest.raises(ValueError, match=r"test must be one of corners, full_rate, .*, not 'all'"):
        regress("block_dot", test="all")
    with pytest.raises(ValueError, match="simulator must be one of verilator, icarus, not 'vcs'"):
        regress("block_dot", simulator="vcs")
