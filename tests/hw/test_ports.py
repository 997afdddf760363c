"""A unit behaves the same with other ports as with its usual ones.

Resets of every kind, a port for each field, and interfaces of SystemVerilog.
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from designs import small

from axs6.commands.output import write_generated
from axs6.hw.core.clocking import RESETS, clocking
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.integration import stream_ports
from axs6.hw.registry import ALL_UNITS, BUS_UNITS
from axs6.hw.systemverilog import interfaces, package
from axs6.hw.verilog import ROLES, Generated, fields_of, generate
from axs6.hw.vhdl import component, identifier
from axs6.sim.regress import regress
from axs6.sim.tools import simulator_environment

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
SMALL: dict[str, Any] = {"block": 8, "stages": 2}


SHORT: dict[str, Any] = {**SMALL, "format": "int4", "accumulator": "paper", "view": BEHAVIOUR}
"""A dot product with few corners, which Icarus soon has."""

ON_BUS: dict[str, Any] = {**SMALL, "dtype": "bf16", "view": BEHAVIOUR}

QUICK = [("axis_decoder", "async-low", ON_BUS)]
"""Unit and reset of the ordinary run, of the level and the kind that are not usual."""

RESET_CASES = [
    *(pytest.param(*each, "icarus", marks=WITH_ICARUS) for each in QUICK),
    pytest.param("dot", "async-low", SHORT, "icarus", marks=[WITH_ICARUS, pytest.mark.slow]),
    *(
        pytest.param(unit, kind, SMALL, "verilator", marks=pytest.mark.slow)
        for unit in ("dot", "matmul", "axis_dot", "stochastic_encoder")
        for kind in RESETS
    ),
]


def behind_usual_ports(made: Generated, body: Callable[[Generated], str]) -> Generated:
    """A unit as it is usually generated, with a body of its own and the Verilog of `made`."""
    usual = generate(made.manifest["unit"], **made.manifest["parameters"])
    found = re.search(rf"^module {usual.module}\(.*?\);$.*?^endmodule", usual.verilog, re.M | re.S)
    assert found
    heading, *lines = found[0].splitlines()
    declared = [line for line in lines if re.match(r" *(input|output) ", line)]
    assert len(declared) == len(usual.ports)
    module = "\n".join([heading, *declared, body(usual), "endmodule", ""])
    return replace(usual, verilog=made.verilog + module)


def instance(made: Generated, **connected: str) -> str:
    """An instance of a unit, each port connected to the name given or to its own."""
    streams = made.manifest["streams"]
    ports = [port for stream in streams for port, _ in stream_ports(stream)]
    pins = {made.manifest["clock"]: "clk", made.manifest["reset"]: "rst"}
    pins |= {port: port for port in ports} | connected
    connections = ", ".join(f".{port}({net})" for port, net in pins.items())
    return f"  {made.module} inner ({connections});"


@pytest.mark.parametrize(("unit", "kind", "given", "simulator"), RESET_CASES)
def test_a_unit_does_the_same_with_every_kind_of_reset(
    unit: str, kind: str, given: dict[str, Any], simulator: str
) -> None:
    made = generate(unit, name="inner_unit", reset=kind, **given)
    low = kind.endswith("low")
    assert made.manifest["reset_kind"] == kind
    ports = ["clk", "rst_n" if low else "rst"]
    if low and unit in BUS_UNITS:
        ports = ["aclk", "aresetn"]
    assert made.ports[:2] == ports
    reset = {ports[1]: "~rst" if low else "rst"}
    whole = behind_usual_ports(made, lambda _: instance(made, **reset))
    outcome = regress(unit, given, simulator=simulator, items=200, generated=whole)
    assert outcome.passed, outcome.failure


@WITH_ICARUS
def test_a_reset_of_the_other_level_is_caught() -> None:
    made = generate("dot", name="inner_unit", reset="sync-low", **SHORT)
    whole = behind_usual_ports(made, lambda _: instance(made))
    run: dict[str, Any] = {"items": 10, "test": "full_rate", "simulator": "icarus"}
    assert not regress("dot", SHORT, generated=whole, **run).passed


BENCH = """
module bench;
  reg clk = 0, reset = {idle};
  wire ready, valid;
  wire [31:0] value;
  {module} unit(.clk(clk), .{port}(reset),
    .i_valid(1'b1), .i_ready(ready), .i_payload({{1'b1, {{{last}{{1'b0}}}}}}),
    .o_valid(valid), .o_ready(1'b0), .o_payload(value));
  initial begin
    repeat (20) begin #5 clk = 1; #5 clk = 0; end
    $display("full: %b", valid);
    reset = ~reset;
    #1 $display("without an edge: %b", valid);
    #5 clk = 1; #1 $display("after one: %b", valid);
  end
endmodule
"""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
@pytest.mark.parametrize("kind", RESETS)
def test_an_asynchronous_reset_needs_no_edge(kind: str, tmp_path: Path) -> None:
    made = generate("dot", reset=kind, **SMALL)
    width = made.manifest["streams"][0]["width"]
    idle = int(kind.endswith("low"))
    bench = BENCH.format(module=made.module, port=made.manifest["reset"], idle=idle, last=width - 1)
    (tmp_path / "bench.v").write_text(bench)
    write_generated(tmp_path, made)
    files = ["bench.v", f"{made.module}.v"]
    subprocess.run(["iverilog", "-o", "bench", *files], cwd=tmp_path, check=True, timeout=60)
    done = subprocess.run(
        ["vvp", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
    )
    at_once = "0" if kind.startswith("async") else "1"
    assert done.stdout.split("\n")[:3] == ["full: 1", f"without an edge: {at_once}", "after one: 0"]


def test_an_unknown_kind() -> None:
    known = "sync-high, sync-low, async-high, async-low"
    with pytest.raises(ValueError, match=f"^reset must be one of {known}, not 'low'$"):
        clocking("low", on_bus=False)


def by_fields(made: Generated, usual: Generated) -> str:
    """An instance of a unit with a port for each field, among ports for payloads."""
    parts = {
        stream["ports"][field.name]: (
            f"{wide['payload']}[{field.offset} +: {field.count * field.width}]"
        )
        for stream, wide in zip(made.manifest["streams"], usual.manifest["streams"], strict=True)
        for field in fields_of(stream)
    }
    return instance(made, **parts)


@WITH_ICARUS
@pytest.mark.parametrize("unit", ["block_dot", pytest.param("encoder", marks=pytest.mark.slow)])
def test_ports_for_fields_have_the_same_bits_and_timing(unit: str) -> None:
    made = generate(unit, name="fields", ports="fields", view="behaviour", **SMALL)
    assert "payload" not in made.manifest["streams"][0]
    wrapped = behind_usual_ports(made, lambda usual: by_fields(made, usual))
    given = made.manifest["parameters"]
    for test in ("full_rate", "random_stalls"):
        outcome = regress(unit, given, items=100, simulator="icarus", generated=wrapped, test=test)
        assert outcome.failures == []


def null_bytes(made: Generated, usual: Generated) -> str:
    """A unit with `tkeep` among the usual ports: bytes that are 0 come as others that count not."""
    lines, pins = [], {}
    for stream in made.manifest["streams"]:
        data, keep = stream["payload"], stream["keep"]
        size = stream["width"] // 8
        lines.append(f"  wire [{size - 1}:0] {keep};")
        if stream["direction"] == "output":
            lines.append(f"  assert property (@(posedge clk) &{keep});")
            continue
        lines.append(f"  wire [{stream['width'] - 1}:0] {data}_other;")
        for k in range(size):
            byte = f"[{8 * k + 7}:{8 * k}]"
            lines.append(f"  assign {keep}[{k}] = {data}{byte} != 0;")
            lines.append(f"  assign {data}_other{byte} = {keep}[{k}] ? {data}{byte} : 8'h{k:02x};")
        pins[data] = f"{data}_other"
    return "\n".join([*lines, instance(made, **pins)])


@pytest.mark.parametrize(
    "unit",
    [
        "axis_decoder",
        *(pytest.param(f"axis_{u}", marks=pytest.mark.slow) for u in ("dot", "encoder")),
    ],
)
def test_null_bytes_are_taken_as_zeros(unit: str) -> None:
    small = {**SMALL, "view": BEHAVIOUR}
    made = generate(unit, name="inner_unit", ports="keep", **small)
    whole = behind_usual_ports(made, lambda usual: null_bytes(made, usual))
    outcome = regress(unit, small, items=200, generated=whole)
    assert outcome.passed, outcome.failure
    ignored = replace(whole, verilog=re.sub(r"\.(\w+_tkeep)\(s_\w+\)", r".\1(-1)", whole.verilog))
    assert ignored != whole
    assert not regress(unit, small, items=10, generated=ignored, test="corners").passed


def by_interfaces(made: Generated, usual: Generated) -> str:
    """A unit with interfaces, among the usual ports."""
    lines = []
    for own, stream in zip(made.manifest["streams"], usual.manifest["streams"], strict=True):
        name, into = f"the_{own['name']}", stream["direction"] == "input"
        lines.append(f"  {made.module}_{own['name']}_if {name} ();")
        for role in [role for role in ROLES if role in stream]:
            signal = stream[role].removeprefix(f"{stream['name']}_")
            wires = [f"{name}.{signal}", stream[role]]
            ends = wires if into ^ (role == "ready") else wires[::-1]
            lines.append(f"  assign {' = '.join(ends)};")
    clock = f".{made.manifest['clock']}(clk), .{made.manifest['reset']}(rst)"
    names = ", ".join(f".{s['name']}(the_{s['name']})" for s in made.manifest["streams"])
    return "\n".join([*lines, f"  {made.module}_with_interfaces inner ({clock}, {names});"])


@pytest.mark.parametrize(
    ("unit", "ports", "given"),
    [
        ("dot", "fields", SHORT),
        pytest.param("dot", "fields", SMALL, marks=pytest.mark.slow),
        pytest.param("axis_dot", "packed", SMALL, marks=pytest.mark.slow),
        pytest.param("matmul", "packed", SMALL, marks=pytest.mark.slow),
    ],
)
def test_a_unit_does_the_same_with_interfaces(unit: str, ports: str, given: dict[str, Any]) -> None:
    made = generate(unit, name="inner_unit", ports=ports, **given)
    text = package(made) + made.verilog + interfaces(made)
    whole = replace(made, verilog=text)
    wrapped = behind_usual_ports(whole, lambda usual: by_interfaces(made, usual))
    outcome = regress(unit, given, items=200, generated=wrapped)
    assert outcome.passed, outcome.failure


@pytest.mark.parametrize(
    ("unit", "given"),
    [
        ("dot", {"block": 8}),
        ("matmul", {"block": 8, "rows": 2, "columns": 3}),
        ("decoder", {"format": "nvfp4", "block": 16}),
        ("axis_encoder", {"block": 8, "align": 16}),
    ],
)
def test_types_of_payloads_have_each_field_at_its_bits(
    unit: str, given: dict[str, Any], tmp_path: Path
) -> None:
    made = generate(unit, **given)
    lines, wrong = [], []
    for stream in made.manifest["streams"]:
        kind, word = f"{made.module}_pkg::{stream['name']}_payload_t", f"{stream['name']}_word"
        width, bits = stream["width"], Random(stream["name"]).getrandbits(stream["width"])
        lines.append(f"  localparam {kind} {word} = {kind}'({width}'h{bits:x});")
        checks = [(f"$bits({kind})", width)]
        for field in fields_of(stream):
            elements = ["".join(f"[{k}]" for k in index) for index in np.ndindex(field.shape)]
            checks += [
                (
                    f"$unsigned({word}.{field.name}{element})",
                    bits >> field.offset + number * field.width & (1 << field.width) - 1,
                )
                for number, element in enumerate(elements)
            ]
        lines += [
            f'  if ({left} != {width}\'h{right:x}) $error("{left}");' for left, right in checks
        ]
        left, right = checks[-1]
        wrong += [f'  if ({left} != {width}\'h{right ^ 1:x}) $error("planted");']
    (tmp_path / "pkg.sv").write_text(package(made))
    for faults in ([], wrong):
        (tmp_path / "top.sv").write_text(
            "\n".join(["module top;", *lines, *faults, "endmodule", ""])
        )
        done = subprocess.run(
            ["verilator", "--lint-only", "-Wno-fatal", "--top-module", "top", "pkg.sv", "top.sv"],
            env=simulator_environment("verilator"),
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert re.findall(r"USERERROR: .*: (.*)", done.stderr) == ["planted"] * len(faults)
        assert "%Error" not in done.stderr


VHDL_TOP = """
library ieee; use ieee.std_logic_1164.all;
use work.{package}.all;
entity top is port (clk, rst : in std_logic); end entity;
architecture a of top is
{signals}
begin
  unit : {module} port map ({connected});
end architecture;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="ghdl is not on PATH")
@pytest.mark.parametrize(
    ("unit", "given"),
    [
        *((unit, None) for unit in ALL_UNITS),
        ("dot", {"ports": "fields", "reset": "async-low"}),
        ("axis_dot", {"reset": "sync-low"}),
        ("lfsr", {"name": "block"}),
        ("lfsr", {"name": "_my__words_"}),
    ],
)
def test_vhdl_takes_the_component(unit: str, given: dict[str, Any] | None, tmp_path: Path) -> None:
    made = small(unit) if given is None else generate(unit, block=8, **given)
    ports = [port for stream in made.manifest["streams"] for port in stream_ports(stream)]
    signals = [
        f"  signal s_{port} : std_logic{f'_vector({width - 1} downto 0)' * (width > 1)};"
        for port, width in ports
    ]
    own = {made.manifest["clock"]: "clk", made.manifest["reset"]: "rst"}
    pins = own | {port: f"s_{port}" for port, _ in ports}
    widest, _ = max(ports, key=lambda port: port[1])
    for wrong in ({}, {widest: "clk"}):
        top = VHDL_TOP.format(
            package=identifier(f"{made.module}_component"),
            module=identifier(made.module),
            signals="\n".join(signals),
            connected=", ".join(f"{port} => {net}" for port, net in (pins | wrong).items()),
        )
        (tmp_path / "top.vhd").write_text(top)
        (tmp_path / "unit.vhd").write_text(component(made))
        done = subprocess.run(
            ["ghdl", "-a", "--std=93", "unit.vhd", "top.vhd"],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode == 0) == (not wrong), done.stderr
