import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from designs import small

from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.formats import name_of, operand_formats
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.hw.core.parameters import VIEWS
from axs6.hw.names import KEYWORDS, plain_names
from axs6.hw.registry import ALL_UNITS, BUS_UNITS, find
from axs6.hw.verilog import FIELDS, KEEP, PACKED, generate
from axs6.sim.tools import simulator_environment

CASES = [("encoder", 0), ("encoder", 5), ("decoder", 1), ("block_dot", 5), ("dot", 0), ("dot", 6)]
ON_BUS = [("axis_encoder", 2), ("axis_decoder", 0), ("axis_dot", 1)]


@pytest.mark.parametrize(
    ("unit", "stages"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case != CASES[1])) for case in CASES],
)
def test_the_same_parameters_give_the_same_bytes(unit: str, stages: int) -> None:
    first, second = (generate(unit, block=8, stages=stages) for _ in range(2))
    assert first == second
    assert str(Path.cwd()) not in first.verilog


def read_cases() -> Iterator[Any]:
    """Every case with every size of block, and with the other view.

    Each run takes one size of those with registers; on a bus there is one without.
    """
    for number, case in enumerate(CASES):
        stages = case[1]
        for index, block in enumerate(MODE_BLOCKS):
            at_once = stages and index == number % len(MODE_BLOCKS)
            marks = () if at_once else pytest.mark.slow
            yield pytest.param(*case, block, "structure", marks=marks)
    yield from ((*case, 8, "structure") for case in ON_BUS)
    for case in (*CASES, *ON_BUS):
        few = case in (CASES[1], CASES[-1], ON_BUS[-1])
        if case[1]:
            yield pytest.param(*case, 8, "behaviour", marks=() if few else pytest.mark.slow)


@pytest.mark.parametrize(("unit", "stages", "block", "view"), list(read_cases()))
def test_verilator_and_icarus_read_it_without_a_word(
    unit: str, stages: int, block: int, view: str, tmp_path: Path
) -> None:
    source = tmp_path / "unit.v"
    source.write_text(generate(unit, block=block, stages=stages, view=view).verilog)
    environment = simulator_environment("verilator")
    commands = [["verilator", "--lint-only", "-Wno-fatal", str(source)]]
    if shutil.which("iverilog"):
        commands.append(["iverilog", "-g2005", "-t", "null", str(source)])
    for command in commands:
        done = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.mark.parametrize(
    "units",
    [
        pytest.param(("lfsr", "expander", "dot", "axis_decoder"), id="some"),
        pytest.param(tuple(ALL_UNITS), id="all", marks=pytest.mark.slow),
    ],
)
def test_yosys_reads_it_without_a_warning(
    units: tuple[str, ...], pyosys: Callable[..., Any], tmp_path: Path
) -> None:
    """Units with registers alone, with gates, with sums, and on a bus; and all."""
    commands = []
    for unit in units:
        source = tmp_path / f"{unit}.v"
        source.write_text(small(unit).verilog)
        top = small(unit).manifest["module"]
        check = ["proc", f"hierarchy -check -top {top}", "check -assert"]
        commands += ["design -reset", f"read_verilog {source}", *check]
    done = pyosys(*commands)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Found and reported 0 problems.") == len(units)
    assert "Warning" not in done.stdout + done.stderr


def test_the_header_names_the_view_where_it_is_not_the_structure() -> None:
    structure, words = (generate("block_dot", block=8, view=v) for v in VIEWS)
    assert structure == generate("block_dot", block=8)
    heads = [made.verilog.splitlines()[0].partition(": ")[2] for made in (structure, words)]
    assert heads[0] == "axs6 generate block_dot --block 8"
    assert heads[1] == "axs6 generate block_dot --block 8 --view behaviour"
    assert [made.manifest["parameters"]["view"] for made in (structure, words)] == list(VIEWS)
    assert words.verilog.count("*") > structure.verilog.count("*"), "products are words"


def test_the_manifest_describes_the_ports() -> None:
    made = generate("dot", block=16, stages=3)
    manifest = made.manifest
    assert manifest["module"] == "axs6_dot"
    assert manifest["parameters"] == {
        "block": 16,
        "blocks": "dense",
        "stages": 3,
        "interleave": 1,
        "view": "structure",
        "accumulator": "fp32",
        "format": "axs6",
    }
    assert (manifest["latency"], manifest["interval"]) == (4, 1)
    given, taken = manifest["streams"]
    assert given["width"] == 2 * (8 + 16 * 6) + 1
    assert [field["name"] for field in given["fields"]] == [
        "a.exponent",
        "a.codes",
        "b.exponent",
        "b.codes",
        "last",
    ]
    assert taken["fields"] == [
        {"name": "value", "offset": 0, "width": 32, "signed": False, "shape": ()}
    ]
    for port in (given, taken):
        for name in (port["valid"], port["ready"], port["payload"]):
            assert f" {name};" in made.verilog


@pytest.mark.parametrize("unit", ALL_UNITS)
def test_no_wire_stands_for_a_field_of_another(unit: str) -> None:
    """Amaranth names every field of a structure, for waveforms; simulators take time over them."""
    declared = re.findall(r"^ *(?:wire|reg) .*?(\S+) *;$", small(unit).verilog, re.M)
    assert declared
    assert [name for name in declared if re.match(r"\\\w\S*[.\[]", name)] == []


@pytest.mark.parametrize("unit", ALL_UNITS)
def test_every_unit_has_a_clock_and_a_reset(unit: str) -> None:
    made = small(unit)
    (ports,) = re.findall(rf"^module {made.module}\((.*?);", made.verilog, re.M | re.S)
    assert "clk" in ports
    assert "rst" in ports


FEW = ("dot", "lfsr", "axis_decoder")
"""Units whose ports for fields and for bytes that count every run has."""

PLAIN = re.compile(r"[A-Za-z]_?[A-Za-z0-9]+(_[A-Za-z0-9]+)*")
"""A name that VHDL takes: no `_` at an end or beside another."""


@pytest.mark.parametrize(
    ("unit", "ports"),
    [
        pytest.param(unit, ports, marks=[pytest.mark.slow] * (ports != PACKED and unit not in FEW))
        for unit in ALL_UNITS
        for ports in (PACKED, KEEP if unit in BUS_UNITS else FIELDS)
    ],
)
def test_names_need_no_backslash_and_ports_are_legal_in_vhdl(unit: str, ports: str) -> None:
    made = small(unit) if ports == PACKED else generate(unit, ports=ports, block=8)
    assert "\\" not in made.verilog
    assert [port for port in made.ports if not PLAIN.fullmatch(port)] == []
    assert len({port.lower() for port in made.ports}) == len(made.ports)


def test_names_that_are_taken_get_a_number() -> None:
    text = "\n".join([*(f"wire \\{name}" for name in ("a.b", "a_b", "a$b", "table")), ""])
    assert plain_names(text) == "wire \\a_b_2\nwire \\a_b\nwire \\a_b_3\nwire \\table_\n"
    assert plain_names("attribute \\a.b 1\n") == "attribute \\a.b 1\n"


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        ("lfsr", {"block": 8, "lfsr_seed": 5}),
        pytest.param(
            "dot",
            {
                "format": "mxfp4",
                "block": 8,
                "accumulator": "hopper_fp8,promote=4",
                "ports": "fields",
                "view": "behaviour",
            },
            marks=pytest.mark.slow,
        ),
        (
            "axis_dot",
            {
                "format": "nvfp4xmxfp4",
                "block": 16,
                "reset": "async-low",
                "name": "own",
                "view": "behaviour",
            },
        ),
    ],
)
def test_the_command_in_the_header_gives_the_same_file(
    unit: str, parameters: dict[str, Any], main: Callable[..., Any], tmp_path: Path
) -> None:
    made = generate(unit, **parameters)
    line = made.verilog.splitlines()[0]
    heading, _, command = line.partition(": ")
    assert heading == f"// AXS-6 {version('axs6')}"
    program, *words = shlex.split(command)
    assert program == "axs6"
    done = main(*words, "-o", "rtl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"rtl/{made.module}.v").read_text() == made.verilog


def test_reserved_words_are_no_names() -> None:
    assert {"reg", "module", "always", "logic", "config", "wire", "endpackage"} < KEYWORDS
    for word in KEYWORDS:
        with pytest.raises(ValueError, match=f"reserved word of SystemVerilog, not '{word}'"):
            generate("lfsr", block=8, name=word)


def test_names_near_reserved_words_are_names() -> None:
    for name in ("Reg", "reg_", "logic1", "_module"):
        assert generate("lfsr", block=8, name=name).module == name


@pytest.mark.parametrize("unit", ["block_dot", "dot", "matmul", "axis_dot"])
@pytest.mark.parametrize("formats", ["nvfp4xmxfp4", "mxfp4xnvfp4", "mx9xmxint8"])
def test_formats_of_other_blocks_need_a_block(unit: str, formats: str) -> None:
    message = "^{} has blocks of {} and {} of {}: give the size for both as block$"
    given = operand_formats(formats)
    said = message.format(*(x for fmt in given for x in (name_of(fmt), fmt.block)))
    with pytest.raises(ValueError, match=said):
        find(unit).parameters({"format": formats})
    with pytest.raises(ValueError, match=said):
        find(unit).component(format=formats)


def test_formats_of_other_blocks_may_be_given_one() -> None:
    assert find("dot").parameters({"format": "nvfp4xmxfp4", "block": 16})["block"] == 16
    find("dot").component(format="nvfp4xmxfp4", block=16)
    assert find("dot").parameters({"format": "mxfp4xmxfp8_e4m3"})["block"] == 32


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_manifests_have_the_name_of_the_accumulator(name: str) -> None:
    assert find("dot").parameters({"format": "mxfp4", "accumulator": name})["accumulator"] == name


def test_lint_rules_are_those_of_the_least_verilator() -> None:
    """Verilator 5.006, of Debian 12, refuses a file that names a rule it does not know."""
    named = re.findall(r"verilator lint_off (\w+)", small("decoder").verilog)
    assert set(named) == {"WIDTH", "CASEINCOMPLETE"}
