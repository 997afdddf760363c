"""The child process that runs Yosys: `python -m axs6.synth.worker`, started in a job's folder.

It reads `design.v` and `job.json`:

- `top`, `flatten`, and the commands `registers` and `rest`,
- `adders`: the files of the ABC scripts to try where full adders become cells, or false,
- `liberty`: the library's file name or null,
- `buffering`: an `axs6.synth.fanout.Buffering` or null,
- `expand`: the commands that turn the mapped cells into their logic, or null.

With `expand` it writes as `result.json`

- `modules`: the netlist that they leave,
- `mapped`: the module before them, of mapped cells; its nets keep their names in `modules`, and
  have those of the design as the attribute `axs6.synth.targets.NAME`. It is left out where there
  are no commands, and `modules` then have the cells and the design's names,
- `models`: in the latter case and with a library, Verilog of its cells that are used, by their
  functions.

Otherwise `result.json` is null where the hierarchy was asked for and the design has none, or has

- `yosys`: the version,
- `modules`: for each module its `cells` (counts by type) and `instances` (name to module),
- `areas` and `registers`: as in `axs6.synth.targets.Costs`.
"""

import json
import math
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

from pyosys import libyosys

from axs6.synth.adder_groups import INVERTED, adders_in_small_groups, inverted_adders
from axs6.synth.adders import AS_GATES, FIND
from axs6.synth.canonical import Child, representatives
from axs6.synth.fanout import Buffering, add_buffers
from axs6.synth.targets import MAP_SCRIPT, NAME, NETLIST


class Yosys:
    """One design in Yosys, which is told commands and asked for JSON by files in `folder`."""

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder
        self._design = libyosys.Design()

    def run(self, *commands: str) -> None:
        """Run commands; Yosys ends the process at the first that fails."""
        for command in commands:
            libyosys.run_pass(command, self._design)

    def replace(self, equals: Mapping[str, Child]) -> None:
        """Make the instances of modules instances of others, whose ports may differ in name."""
        for module in dict(self._design.modules_).values():
            for cell in dict(module.cells_).values():
                equal = equals.get(cell.type.str().removeprefix("\\"))
                if equal is None:
                    continue
                pins = {port.str(): cell.getPort(port) for port in dict(cell.connections())}
                for port in pins:
                    cell.unsetPort(libyosys.IdString(port))
                for port, bits in equal.pins.items():
                    signal = libyosys.SigSpec()
                    for theirs, k in bits:
                        if f"\\{theirs}" in pins:
                            signal.append(pins[f"\\{theirs}"].extract(k, 1))
                        else:
                            open_pin = module.uniquify(libyosys.IdString("$open"))
                            signal.append(libyosys.SigSpec(module.addWire(open_pin, 1)))
                    cell.setPort(libyosys.IdString(f"\\{port}"), signal)
                cell.type = libyosys.IdString(f"\\{equal.module}")

    def retype(self, chosen: Callable[[Mapping[str, Any]], set[str]], kind: str) -> bool:
        """Give the cells that `chosen` names in each module a type; say whether there are any."""
        netlist = self.netlist()
        any_chosen = False
        for module in dict(self._design.modules_).values():
            found = chosen(netlist[module.name.str().removeprefix("\\")])
            any_chosen |= bool(found)
            for cell in dict(module.cells_).values():
                if cell.name.str().removeprefix("\\") in found:
                    cell.type = libyosys.IdString(f"\\{kind}")
        return any_chosen

    def netlist(self) -> dict[str, Any]:
        """Return the modules of the JSON netlist."""
        path = self._folder / NETLIST
        self.run(f"write_json -noscopeinfo {path}")
        modules: dict[str, Any] = json.loads(path.read_text())["modules"]
        return modules

    def note_names(self, module: str) -> None:
        """Give each wire of a module its name, which may change, as the attribute `NAME`."""
        for wire in dict(self._design.modules_[libyosys.IdString(f"\\{module}")].wires_).values():
            wire.set_string_attribute(libyosys.IdString(f"\\{NAME}"), wire.name.unescape())

    def models(self, cells: Set[str], liberty: str) -> str:
        """Return Verilog of cells as the library describes their functions; the design goes."""
        self.run("design -reset", f"read_liberty -ignore_miss_func {liberty}")
        for module in dict(self._design.modules_).values():
            if module.name.str().removeprefix("\\") not in cells:
                self._design.remove(module)
        path = self._folder / "models.v"
        self.run(f"write_verilog -noattr {path}")
        return path.read_text()

    def statistics(self, liberty: str | None) -> dict[str, Any]:
        """Return what `stat -json` says, with areas where there is a library."""
        option = f" -liberty {liberty}" if liberty else ""
        path = self._folder / "stat.json"
        self.run(f"tee -q -o {path} stat -hierarchy -json{option}")
        statistics: dict[str, Any] = json.loads(path.read_text())
        return statistics

    def area(self, liberty: str) -> float:
        """Return the area of the whole design in units of the library."""
        return float(self.statistics(liberty)["design"]["num_cells"]["area"])


def _merge_identical(yosys: Yosys, top: str) -> bool:
    """Let equal modules be one; say whether the design has submodules."""
    yosys.run("design -save loaded", "proc", "opt_clean")
    modules = yosys.netlist()
    yosys.run("design -load loaded")
    yosys.replace(representatives(modules, top))
    yosys.run(f"hierarchy -top {top}")
    return len(modules) > 1


def _map_gates(yosys: Yosys, job: dict[str, Any]) -> None:
    """Map the gates and, where that is asked for, the full adders.

    Small groups of full adders become cells or gates, and one of several scripts maps the gates:
    whichever of these make the design smallest.
    """
    map_rest = [*job["rest"], "delete t:$scopeinfo"]
    if not job["adders"]:
        yosys.run(*map_rest)
        return
    abc = next(k for k, command in enumerate(map_rest) if MAP_SCRIPT in command)
    yosys.run(FIND, "design -save found")
    least = math.inf
    for small_as_gates in (False, True):
        yosys.run("design -load found")
        if small_as_gates and not yosys.retype(adders_in_small_groups, AS_GATES):
            break
        yosys.retype(inverted_adders, INVERTED)
        yosys.run(*map_rest[:abc], "design -save chosen")
        for script in job["adders"]:
            mapping = (command.replace(MAP_SCRIPT, script) for command in map_rest[abc:])
            yosys.run("design -load chosen", *mapping)
            area = yosys.area(job["liberty"])
            if area < least:
                least = area
                yosys.run("design -save smallest")
    yosys.run("design -load smallest")


def _map(yosys: Yosys, job: dict[str, Any]) -> None:
    """Map the design and put buffers before the registers."""
    _map_gates(yosys, job)
    if job["buffering"] is None:
        return
    plan = Buffering(**job["buffering"])
    yosys.run("write_json mapped.json")
    netlist = json.loads(Path("mapped.json").read_text())
    for module in netlist["modules"].values():
        add_buffers(module, plan)
    Path("mapped.json").write_text(json.dumps(netlist))
    yosys.run("design -reset", "read_json mapped.json", f"hierarchy -top {job['top']}")


def _cells(statistics: dict[str, Any], column: str) -> dict[str, dict[str, float]]:
    """Return one column of the cells of each module, by type."""
    return {
        module.removeprefix("\\"): {
            cell: float(row[column])
            for cell, row in rows["num_cells_by_type"].items()
            if int(row["local_count"])
        }
        for module, rows in statistics["modules"].items()
    }


def _measure(yosys: Yosys, job: dict[str, Any]) -> dict[str, Any]:
    yosys.run(*job["registers"])
    registers = {
        cell
        for cells in _cells(yosys.statistics(None), "local_count").values()
        for cell in cells
        if not cell.startswith("$")
    }
    _map(yosys, job)
    statistics = yosys.statistics(job["liberty"])
    counts = _cells(statistics, "local_count")
    areas = {
        cell: round(area / counts[module][cell], 6)
        for module, cells in _cells(statistics, "local_area").items()
        for cell, area in cells.items()
    }
    yosys.run("delete =A:blackbox")
    netlist = yosys.netlist()
    modules = {
        module: {
            "cells": {cell: int(count) for cell, count in cells.items()},
            "instances": {
                name: cell["type"]
                for name, cell in netlist[module]["cells"].items()
                if cell["type"] in counts
            },
        }
        for module, cells in counts.items()
    }
    version = statistics["creator"].removeprefix("Yosys ").split(",")[0] + ")"
    return {
        "yosys": version,
        "modules": modules,
        "areas": areas,
        "registers": sorted(registers),
    }


def _expanded(yosys: Yosys, job: dict[str, Any]) -> dict[str, Any]:
    yosys.run(*job["registers"])
    _map(yosys, job)
    yosys.run("delete t:$scopeinfo")
    if not job["expand"]:
        modules = yosys.netlist()
        if job["liberty"] is None:
            return {"modules": modules}
        used = {cell["type"] for cell in modules[job["top"]]["cells"].values()}
        return {"modules": modules, "models": yosys.models(used, job["liberty"])}
    yosys.note_names(job["top"])
    # A net outlives the commands by a public name without "$", and by an attribute.
    yosys.run("rename -hide", "rename -enumerate -pattern net%", "setattr -set keep 1 w:*")
    mapped = yosys.netlist()[job["top"]]
    yosys.run(*job["expand"], "delete t:$scopeinfo")
    return {"modules": yosys.netlist(), "mapped": mapped}


def main() -> None:
    """Do the job in the working directory."""
    job = json.loads(Path("job.json").read_text())
    yosys = Yosys()
    yosys.run("read_verilog design.v", f"hierarchy -check -top {job['top']}")
    if job["expand"] is not None:
        Path("result.json").write_text(json.dumps(_expanded(yosys, job)))
        return
    wanted = job["flatten"] or _merge_identical(yosys, job["top"])
    result = _measure(yosys, job) if wanted else None
    Path("result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
