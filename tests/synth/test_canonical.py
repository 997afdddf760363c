"""Which modules are one: netlists renamed and shuffled, and those changed in one place."""

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.synth.area import area
from axs6.synth.canonical import representatives

PARTS = r"""
module leaf(input [3:0] a, input signed [3:0] b, input clk, output [4:0] \s$1 , output reg q);
  wire [3:0] x = a & ~b;
  assign \s$1 = b[1] ? x - (a << 1) : 5'b1x010;
  initial q = 1;
  always @(posedge clk) q <= ^x ^ (a < b) ^ (q & b[0]);
endmodule
module pair(input [3:0] a, b, input clk, output [4:0] \low$3 , \high$4 , output q);
  wire q0, q1;
  leaf first(.a(a), .b(b), .clk(clk), .\s$1 (\low$3 ), .q(q0));
  leaf second(.a(b), .b(a), .clk(clk), .\s$1 (\high$4 ), .q(q1));
  assign q = q0 | q1 & a[3];
endmodule
module top(input [3:0] a, b, input clk, output [9:0] s, output q);
  pair only(.a(a), .b(b), .clk(clk), .\low$3 (s[4:0]), .\high$4 (s[9:5]), .q(q));
endmodule
"""

Modules = dict[str, Any]


def in_a_child(program: str, folder: Path) -> None:
    """Run Python that has Yosys in a process of its own, as `axs6 area` does: with libyosys loaded
    before it, torch's compiled code crashes."""
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


NETLIST = """
import json, pathlib, sys
from axs6.synth.worker import Yosys
folder = pathlib.Path(sys.argv[1])
yosys = Yosys(folder)
yosys.run(f"read_verilog {folder / 'parts.v'}", "hierarchy -top top", "proc", "opt_clean")
(folder / "modules.json").write_text(json.dumps(yosys.netlist()))
"""


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    folder = tmp_path_factory.mktemp("identical")
    (folder / "parts.v").write_text(PARTS)
    in_a_child(NETLIST, folder)
    modules: Modules = json.loads((folder / "modules.json").read_text())
    return modules


def shuffled(things: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    items = list(things.items())
    rng.shuffle(items)
    return dict(items)


def permuted(module: Modules, rng: random.Random, children: dict[str, str]) -> Modules:
    """The same module with other nets, private names and orders; `children` renames modules."""
    numbers = list(range(1000, 3000))
    rng.shuffle(numbers)
    text = copy.deepcopy(module)
    ports = {
        name: f"port${rng.randrange(10**6)}" if "$" in name else name for name in text["ports"]
    }

    def nets(bits: list[Any]) -> list[Any]:
        return [numbers[bit] if isinstance(bit, int) else bit for bit in bits]

    for thing in (*text["ports"].values(), *text["netnames"].values()):
        thing["bits"] = nets(thing["bits"])
    for cell in text["cells"].values():
        pins = {pin: nets(bits) for pin, bits in cell["connections"].items()}
        cell["connections"] = shuffled(pins, rng)
        cell["type"] = children.get(cell["type"], cell["type"])
    cells = {
        f"$new${rng.random()}" if "$" in name else name: cell
        for name, cell in text["cells"].items()
    }
    names = {f"$net${rng.random()}": net for net in text["netnames"].values()}
    return {
        **text,
        "ports": shuffled({ports[name]: port for name, port in text["ports"].items()}, rng),
        "cells": shuffled(cells, rng),
        "netnames": shuffled(names, rng),
    }


def above(modules: Modules, *names: str) -> Modules:
    """The modules with one on top that has an instance of each of those named."""
    cells = {
        name: {
            "type": name,
            "parameters": {},
            "attributes": {},
            "port_directions": {},
            "connections": {},
        }
        for name in names
    }
    return {**modules, "all": {"attributes": {}, "ports": {}, "cells": cells, "netnames": {}}}


@pytest.mark.parametrize("seed", range(20))
def test_permuted_modules_are_one(netlist: Modules, seed: int) -> None:
    rng = random.Random(seed)
    other = permuted(netlist["leaf"], rng, {})
    found = representatives(above({**netlist, "other": other}, "leaf", "other"), "all")
    assert found["other"].module == "leaf"
    (generated,) = (name for name in other["ports"] if "$" in name)
    own = {name: generated if "$" in name else name for name in netlist["leaf"]["ports"]}
    assert found["other"].pins == {
        name: [(own[name], k) for k in range(len(port["bits"]))]
        for name, port in netlist["leaf"]["ports"].items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_modules_of_permuted_modules_are_one(netlist: Modules, seed: int) -> None:
    rng = random.Random(seed)
    leaf = permuted(netlist["leaf"], rng, {})
    pair = permuted(netlist["pair"], rng, {"leaf": "leaf2"})
    (theirs,) = (name for name in leaf["ports"] if "$" in name)
    for cell in pair["cells"].values():
        if cell["type"] == "leaf2":
            for key in ("connections", "port_directions"):
                cell[key] = {theirs if "$" in p else p: value for p, value in cell[key].items()}
    modules = {**netlist, "leaf2": leaf, "pair2": pair}
    found = representatives(above(modules, "pair", "pair2"), "all")
    assert {name: child.module for name, child in found.items()} == {
        "leaf2": "leaf",
        "pair2": "pair",
    }
    assert [pair["ports"][port]["bits"][k] for port, k in found["pair2"].pins["high$4"]] == pair[
        "cells"
    ]["second"]["connections"][theirs]


def test_merged_inputs_are_one(netlist: Modules) -> None:
    """An input with a generated name stands for two; ones with names in both keep them."""
    leaf = netlist["leaf"]
    other = permuted(leaf, random.Random(0), {})
    a, b = (other["ports"].pop(name)["bits"] for name in "ab")
    other["ports"]["port$7"] = {"direction": "input", "bits": [b[3], *a, *b[:3]]}
    found = representatives(above({"leaf": leaf, "other": other}, "leaf", "other"), "all")
    assert found["other"].pins["a"] == [("port$7", k) for k in (1, 2, 3, 4)]
    assert found["other"].pins["b"] == [("port$7", k) for k in (5, 6, 7, 0)]


REPLACE = """
import pathlib, sys
from axs6.synth.canonical import representatives
from axs6.synth.worker import Yosys
folder = pathlib.Path(sys.argv[1])
yosys = Yosys(folder)
yosys.run(f"read_verilog {folder / 'top.v'}", "hierarchy -top top", "proc")
yosys.run("design -save four", "flatten", "rename top gold", "design -stash gold")
yosys.run("design -load four")
equals = representatives(yosys.netlist(), "top")
assert sorted(equals) == ["top.l1", "top.l2"], equals
yosys.replace(equals)
yosys.run("hierarchy -check -top top", "flatten", "rename top gate", "opt_clean")
yosys.run("design -copy-from gold -as gold gold", "equiv_make gold gate proof")
yosys.run("hierarchy -top proof", "opt_clean", "equiv_simple")
yosys.run(f"tee -q -o {folder / 'proof.txt'} equiv_status")
"""


def test_replaced_instances_compute_the_same(tmp_path: Path) -> None:
    """Yosys proves the design with one module for four equal to the one with four."""
    source = r"""
    module \top.l0 (input [3:0] a, b, output [3:0] y); assign y = a - b; endmodule
    module \top.l1 (input [7:0] \p$1 , output [3:0] y);
      assign y = \p$1 [5:2] - {\p$1 [7:6], \p$1 [1:0]};
    endmodule
    module \top.l2 (input [3:0] \p$2 , b, output [3:0] \y ); assign y = \p$2 - b; endmodule
    module \top.l3 (input [3:0] a, b, output [3:0] y); assign y = b - a; endmodule
    module top(input [7:0] i, output [15:0] o);
      \top.l0 l0(.a(i[3:0]), .b(i[7:4]), .y(o[3:0]));
      \top.l1 l1(.\p$1 (i), .y(o[7:4]));
      \top.l2 l2(.\p$2 (i[6:3]), .b(4'd9), .y(o[11:8]));
      \top.l3 l3(.a(i[3:0]), .b(i[7:4]), .y(o[15:12]));
    endmodule
    """
    (tmp_path / "top.v").write_text(source)
    in_a_child(REPLACE, tmp_path)
    proof = (tmp_path / "proof.txt").read_text()
    assert "16 are proven and 0 are unproven" in proof


def of_type(module: Modules, kind: str) -> Modules:
    cell: Modules = next(cell for cell in module["cells"].values() if cell["type"] == kind)
    return cell


def swap_inputs(module: Modules) -> None:
    pins = of_type(module, "$lt")["connections"]
    pins["A"], pins["B"] = pins["B"], pins["A"]


def change_constant(module: Modules) -> None:
    bits = of_type(module, "$mux")["connections"]["A"]
    assert bits == ["0", "1", "0", "x", "1"]
    bits[0] = "1"


def change_unknown(module: Modules) -> None:
    bits = of_type(module, "$mux")["connections"]["A"]
    bits[bits.index("x")] = "0"


def change_parameter(module: Modules) -> None:
    of_type(module, "$dff")["parameters"]["CLK_POLARITY"] = "0"


def change_signedness(module: Modules) -> None:
    of_type(module, "$lt")["parameters"]["A_SIGNED"] = "1"


def change_cell(module: Modules) -> None:
    of_type(module, "$sub")["type"] = "$add"


def swap_output_bits(module: Modules) -> None:
    bits = module["ports"]["s$1"]["bits"]
    bits[0], bits[1] = bits[1], bits[0]


def swap_input_bits(module: Modules) -> None:
    bits = module["ports"]["a"]["bits"]
    bits[0], bits[1] = bits[1], bits[0]


def swap_ports(module: Modules) -> None:
    ports = module["ports"]
    ports["a"]["bits"], ports["b"]["bits"] = ports["b"]["bits"], ports["a"]["bits"]


def change_start(module: Modules) -> None:
    net = next(net for net in module["netnames"].values() if "init" in net["attributes"])
    net["attributes"]["init"] = "0"


def change_attribute(module: Modules) -> None:
    of_type(module, "$dff")["attributes"]["keep"] = "1"


def open_feedback(module: Modules) -> None:
    """The flip-flop's own output, read by one gate, becomes an input bit."""
    (state,) = of_type(module, "$dff")["connections"]["Q"]
    reader = next(
        cell
        for cell in module["cells"].values()
        if cell["type"] == "$and" and state in cell["connections"]["A"]
    )
    reader["connections"]["A"] = [module["ports"]["a"]["bits"][0]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "change",
    [
        swap_inputs,
        change_constant,
        change_unknown,
        change_parameter,
        change_signedness,
        change_cell,
        swap_output_bits,
        swap_input_bits,
        swap_ports,
        change_start,
        change_attribute,
        open_feedback,
    ],
)
def test_changed_modules_stay_apart(
    netlist: Modules, change: Callable[[Modules], None], seed: int
) -> None:
    other = copy.deepcopy(netlist["leaf"])
    change(other)
    other = permuted(other, random.Random(seed), {})
    assert representatives(above({**netlist, "other": other}, "leaf", "other"), "all") == {}


def test_modules_of_changed_modules_stay_apart(netlist: Modules) -> None:
    leaf, pair = copy.deepcopy(netlist["leaf"]), copy.deepcopy(netlist["pair"])
    change_constant(leaf)
    pair["cells"]["second"]["type"] = "leaf2"
    modules = {**netlist, "leaf2": leaf, "pair2": pair}
    assert representatives(above(modules, "pair", "pair2"), "all") == {}


def test_names_of_instances_count(netlist: Modules) -> None:
    other = copy.deepcopy(netlist["pair"])
    other["cells"]["third"] = other["cells"].pop("second")
    assert representatives(above({**netlist, "other": other}, "pair", "other"), "all") == {}


def test_black_boxes_stay_apart() -> None:
    box = {
        "attributes": {"blackbox": "1"},
        "ports": {"a": {"direction": "input", "bits": [2]}},
        "cells": {},
        "netnames": {},
    }
    assert representatives(above({"one": box, "two": box}, "one", "two"), "all") == {}


@pytest.mark.parametrize(
    ("unit", "parameters", "lanes"),
    [
        pytest.param(
            *("encoder", {"dtype": "bf16"}, {"choose/lane", "round/lane", "unpack/lane"}),
            marks=pytest.mark.slow,
        ),
        ("decoder", {}, {"lane"}),
        pytest.param(
            *("block_dot", {}, {"partial_products/lane", "products/lane"}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("matmul", {"rows": 1, "columns": 2}, {"partial_products/lane", "products/lane"}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_lanes_are_one(unit: str, parameters: dict[str, Any], lanes: set[str]) -> None:
    generated = generate(unit, block=8, **parameters)
    parts = area(generated.verilog, generated.module).parts
    paths = [part.path for part in parts]
    for lane in lanes:
        assert any(path.endswith(f"{lane}[0-7]") for path in paths), (lane, paths)
    assert len(set(paths)) == len(paths)
