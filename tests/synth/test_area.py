import json
from pathlib import Path

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from axs6.synth.area import area
from axs6.synth.targets import FPGAS, TARGETS

NAND = "module gate(input a, b, output y); assign y = ~(a & b); endmodule"
REGISTER = """
module register(input clk, en, input [7:0] d, output reg [7:0] q);
  always @(posedge clk) if (en) q <= d;
endmodule
"""
RESET_REGISTER = """
module register(input clk, rst, en, input [7:0] d, output reg [7:0] q);
  always @(posedge clk) if (rst) q <= 8'h5a; else if (en) q <= d;
endmodule
"""
TWO = f"""
{NAND}
module two(input [3:0] x, output [1:0] y);
  gate left(x[0], x[1], y[0]);
  gate right(x[2], x[3], y[1]);
endmodule
"""


class Leaf(wiring.Component):
    d: In(1)
    q: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.q.eq(self.d)
        return m


class Lane(wiring.Component):
    d: In(1)
    q: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Leaf()
        m.submodules.second = second = Leaf()
        m.d.comb += [first.d.eq(self.d), second.d.eq(first.q), self.q.eq(second.q)]
        return m


class Nest(wiring.Component):
    """Twelve equal lanes of two flip-flops each, and a flip-flop of its own."""

    d: In(12)
    q: Out(12)
    any: Out(1)

    def elaborate(self, platform):
        m = Module()
        for k in range(12):
            m.submodules[f"lane{k}"] = lane = Lane()
            m.d.comb += [lane.d.eq(self.d[k]), self.q[k].eq(lane.q)]
        m.d.sync += self.any.eq(self.d.any())
        return m


@pytest.fixture(scope="module")
def nest() -> str:
    return verilog.convert(Nest(), name="axs6_nest", emit_src=False, strip_internal_attrs=True)


def test_nand_is_one_gate_equivalent() -> None:
    report = area(NAND, "gate")
    assert report.total.figures == {
        "gate_equivalents": 1.0,
        "transistors": 4,
        "gates": 1,
        "flip_flops": 0,
    }
    assert report.total.cells == {"NAND2": 1}
    assert report.unflattened == report.total
    assert report.parts == ()


def test_constant_outputs_cost_nothing() -> None:
    report = area("module t(input a, output y, z); assign y = a & ~a, z = 1; endmodule", "t")
    assert report.total.figures["gate_equivalents"] == 0
    assert report.total.cells == {}


@pytest.mark.parametrize(
    ("target", "source"),
    [
        *((target, REGISTER) for target in TARGETS if target not in FPGAS),
        *(
            pytest.param(target, RESET_REGISTER, marks=[pytest.mark.slow] * (target == "xc7"))
            for target in TARGETS
        ),
    ],
)
def test_register_of_eight_bits(target: str, source: str) -> None:
    assert area(source, "register", target=target).total.figures["flip_flops"] == 8


@pytest.mark.parametrize(
    "target",
    [pytest.param(each, marks=[pytest.mark.slow] * (each == "xc7")) for each in FPGAS],
)
def test_nand_is_one_lut_and_a_register_none(target: str) -> None:
    source = """
    module both(input clk, en, a, b, input [7:0] d, output y, output reg [7:0] q);
      assign y = ~(a & b);
      always @(posedge clk) if (en) q <= d;
    endmodule
    """
    figures = area(source, "both", target=target).total.figures
    assert figures == {"luts": 1, "flip_flops": 8, "carries": 0, "dsps": 0, "block_rams": 0}


def test_adder_takes_carry_cells() -> None:
    source = "module add(input [15:0] a, b, output [15:0] y); assign y = a + b; endmodule"
    assert area(source, "add", target="xc7").total.figures["carries"] == 4
    assert area(source, "add", target="ecp5").total.figures["carries"] == 8


def test_multiplier_and_memory_take_blocks() -> None:
    source = """
    module blocks(input clk, we, input [9:0] at, input [15:0] d, output [31:0] y);
      reg [15:0] store [0:1023]; reg [15:0] q;
      always @(posedge clk) begin if (we) store[at] <= d; q <= store[at]; end
      assign y = q * d;
    endmodule
    """
    figures = area(source, "blocks", target="ecp5").total.figures
    assert (figures["dsps"], figures["block_rams"]) == (1, 1)


def test_library_counts_gates_and_flip_flops(tiny: Path) -> None:
    source = """
    module both(input clk, input [2:0] a, b, output reg [2:0] q, output y);
      always @(posedge clk) q <= ~(a & b);
      assign y = ~(a[0] | b[1]);
    endmodule
    """
    report = area(source, "both", liberty=tiny)
    assert (report.target, report.library) == ("liberty", str(tiny))
    assert report.total.cells == {"TINY_DFF": 3, "TINY_NAND2": 3, "TINY_NOR2": 1}
    assert report.total.figures == {
        "area": 3 * 9.0 + 3 * 2.0 + 2.5,
        "sequential_area": 27.0,
        "sequential_share": pytest.approx(27.0 / 35.5),
        "flip_flops": 3,
    }


def test_library_with_plain_flip_flop_does_enable_and_reset(tiny: Path) -> None:
    figures = area(RESET_REGISTER, "register", liberty=tiny).total.figures
    assert (figures["flip_flops"], figures["sequential_area"]) == (8, 72.0)
    assert figures["area"] > 72.0


def test_library_without_flip_flop_maps_gates(without_flip_flop: Path) -> None:
    figures = area(NAND, "gate", liberty=without_flip_flop).total.figures
    assert (figures["area"], figures["flip_flops"], figures["sequential_share"]) == (2.0, 0, 0.0)


@pytest.mark.parametrize("mark", ["dont_use", "is_isolation_cell", "is_level_shifter", "always_on"])
def test_cells_that_are_not_for_logic_are_left_alone(tiny: Path, mark: str) -> None:
    pins = "pin (A) { direction : input; } pin (B) { direction : input; }"
    gate = f'{pins} pin (Y) {{ direction : output; function : "!(A*B)"; }}'
    more = f"cell (SPECIAL) {{ area : 0.1; {mark} : true; {gate} }}"
    text = tiny.read_text()
    tiny.write_text(text.replace("library (tiny) {", f"library (tiny) {{ {more}", 1))
    assert area(NAND, "gate", liberty=tiny).total.cells == {"TINY_NAND2": 1}
    tiny.write_text(tiny.read_text().replace(f"{mark} : true;", ""))
    assert area(NAND, "gate", liberty=tiny).total.cells == {"SPECIAL": 1}


def test_library_maps_constants_without_tie_cells(tiny: Path) -> None:
    source = "module t(input a, b, output y); assign y = (a ^ b) | (a ~^ b); endmodule"
    assert area(source, "t", liberty=tiny).total.figures["area"] == 0


def test_two_instances_of_one_module() -> None:
    report = area(TWO, "two")
    assert report.total.cells == {"NAND2": 2}
    assert [(part.path, part.module, part.instances) for part in report.parts] == [
        ("left", "gate", 1),
        ("right", "gate", 1),
    ]
    assert all(part.each.cells == {"NAND2": 1} for part in report.parts)


def test_breakdown_of_nested_design(nest: str, tiny: Path) -> None:
    report = area(nest, "axs6_nest", liberty=tiny)
    assert [(part.path, part.instances) for part in report.parts] == [
        ("lane[0-11]", 12),
        ("lane[0-11]/first", 12),
        ("lane[0-11]/second", 12),
    ]
    flip_flops = [part.each.figures["flip_flops"] for part in report.parts]
    assert flip_flops == [2, 1, 1]
    assert report.parts[0].module == "axs6_nest.lane0"
    assert report.parts[0].each.figures["area"] >= 18.0
    assert report.unflattened.figures["flip_flops"] == report.total.figures["flip_flops"] == 25


def test_breakdown_on_fpga(nest: str) -> None:
    report = area(nest, "axs6_nest", target="ice40")
    lane = report.parts[0]
    assert (lane.path, lane.instances, lane.each.figures["flip_flops"]) == ("lane[0-11]", 12, 2)


def test_modules_that_differ_stay_apart() -> None:
    source = """
    module \\u.a0 (input a, b, output y); assign y = ~(a & b); endmodule
    module \\u.a1 (input a, b, output y); assign y = ~(a | b); endmodule
    module \\u.a2 (input a, b, output y); assign y = ~(a & b); endmodule
    module u(input a, b, output [2:0] y);
      \\u.a0 a0(a, b, y[0]); \\u.a1 a1(a, b, y[1]); \\u.a2 a2(a, b, y[2]);
    endmodule
    """
    parts = area(source, "u").parts
    assert [(p.path, p.instances, p.each.cells) for p in parts] == [
        ("a[0,2]", 2, {"NAND2": 1}),
        ("a1", 1, {"NOR2": 1}),
    ]


def test_two_runs_are_equal(nest: str) -> None:
    first, second = area(nest, "axs6_nest"), area(nest, "axs6_nest")
    assert first == second
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def test_to_dict_names_the_tools() -> None:
    report = area(TWO, "two").to_dict()
    assert list(report) == [
        "top",
        "target",
        "library",
        "area_unit",
        "optimise",
        "adder_cells",
        "timing",
        "placement",
        "total",
        "unflattened",
        "parts",
        "tools",
    ]
    assert list(report["tools"]) == ["pyosys", "yosys"]
    assert report["parts"][0]["each"]["cells"] == {"NAND2": 1}


BRACKETS = r"""
module inverse(input [3:0] i, output [3:0] o); assign o = ~i; endmodule
module top(input [3:0] i, output [3:0] o, p);
  wire [3:0] x;
  wire [3:0] \x[0] ;
  inverse first(.i(i), .o(x));
  inverse second(.i({i[0], i[3:1]}), .o(\x[0] ));
  assign o = x & \x[0] , p = x ^ \x[0] ;
endmodule
"""


@pytest.mark.parametrize(
    "target",
    [pytest.param(each, marks=[pytest.mark.slow] * (each == "xc7")) for each in FPGAS],
)
def test_names_with_brackets_on_fpga(target: str) -> None:
    report = area(BRACKETS, "top", target=target)
    assert [part.path for part in report.parts] == ["first", "second"]
    assert report.unflattened.figures["luts"] == 16
