"""Why the project, ABC's `stime` and OpenSTA give different delays of one mapped design.

Run with `python benchmarks/delays.py --liberty FILE`; OpenSTA's `sta` must be on PATH. One
assumption after the other is changed, in the library or around the design, until one tool's figure
is another's. What the changes leave is printed too.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from axs6.hw.verilog import generate
from axs6.synth.cells import Cell, TimingTable
from axs6.synth.liberty import LibertyGroup, parse
from axs6.synth.netlist import MappedDesign, mapped_design
from axs6.synth.opensta import timing_tools
from axs6.synth.surroundings import surroundings
from axs6.synth.timing import library_timing

DESIGNS = (
    ("block_dot, speed", "block_dot", "axs6", {"optimise": "speed"}),
    ("mxfp4, speed", "block_dot", "mxfp4", {"optimise": "speed"}),
    ("mxint8, speed", "block_dot", "mxint8", {"optimise": "speed"}),
    ("block_dot, area", "block_dot", "axs6", {"optimise": "area"}),
    ("adder cells", "block_dot", "axs6", {"adder_cells": True}),
    ("decoder, area", "decoder", "axs6", {"optimise": "area"}),
)
"""Columns: their names, units, formats, and how they are mapped."""

EDGE_CAPACITANCE = re.compile(r"\b(?:rise|fall)_capacitance(?:_range)? *(?::|\()[^;]*;")


def one_arc(library: LibertyGroup) -> LibertyGroup:
    """One arc between two pins, as ABC reads them: the worst tables, the sense of the first."""
    for cell in library.all("cell"):
        for pin in cell.all("pin"):
            arcs = [
                arc
                for arc in pin.all("timing")
                if arc.text("timing_type", "combinational") == "combinational"
            ]
            first = {arc.text("related_pin"): arc for arc in reversed(arcs)}
            for arc in arcs:
                kept = first[arc.text("related_pin")]
                if arc is not kept:
                    pin.groups.remove(arc)
                    worst(kept, arc)
    return library


def worst(arc: LibertyGroup, other: LibertyGroup) -> None:
    """Let the tables of an arc have the larger of their own and another arc's values."""
    theirs = {table.kind: table for table in other.groups}
    for table in arc.groups:
        if table.kind not in theirs or "values" not in table.attributes:
            continue
        rows = zip(table.attributes["values"], theirs[table.kind].attributes["values"], strict=True)
        table.attributes["values"] = tuple(
            ", ".join(
                str(max(float(a), float(b)))
                for a, b in zip(mine.split(","), its.split(","), strict=True)
            )
            for mine, its in rows
        )


def written(group: LibertyGroup) -> Iterator[str]:
    """The text of a group."""
    yield f"{group.kind} ({', '.join(map(quoted, group.arguments))}) {{"
    for name, values in group.attributes.items():
        if len(values) > 1 or name == "values" or name.startswith("index_"):
            yield f"{name} ({', '.join(map(quoted, values))});"
        elif name != "define":
            yield f"{name} : {quoted(values[0])};"
    for each in group.groups:
        yield from written(each)
    yield "}"


def quoted(value: str) -> str:
    return value if re.fullmatch(r"[\w.+-]+", value) else f'"{value}"'


def unloaded(driver: Cell) -> Cell:
    """The cell without what it takes to drive nothing with a sharp edge."""

    def less(table: TimingTable) -> TimingTable:
        own = table.at(0.0, 0.0)
        return replace(table, values=tuple(tuple(v - own for v in row) for row in table.values))

    arcs = [
        replace(arc, delay={edge: less(table) for edge, table in arc.delay.items()})
        for arc in driver.arcs
    ]
    return replace(driver, arcs=tuple(arcs))


def without_driver(design: MappedDesign) -> float:
    """The project's delay where the driver takes no time without load, in picoseconds."""
    around = surroundings(design.library)
    assert around is not None
    driven = replace(around, driver=unloaded(around.driver))
    return library_timing(design.module, design.library, driven, "").delay_ps or 0.0


def column(design: MappedDesign, text: str, folder: Path) -> list[float | None]:
    """The figures of a design from the project's delay to ABC's."""

    def opensta(variant: str) -> float:
        path = folder / "variant.lib"
        path.write_text(variant, encoding="utf-8")
        return timing_tools(replace(design, liberty=path)).opensta_ps

    tools = timing_tools(design)
    driven = without_driver(design)
    mean = opensta(EDGE_CAPACITANCE.sub("", text))
    wires = tools.opensta_wire_load_ps
    merged = opensta("\n".join(written(one_arc(parse(text, "library")))))
    own, stime = tools.opensta_ps, tools.abc_stime_ps
    return [
        tools.axs6_ps,
        driven - tools.axs6_ps,
        own - mean,
        mean - driven,
        own,
        None if wires is None else wires - own,
        wires,
        None if stime is None else merged - own,
        None if stime is None else stime - merged,
        stime,
    ]


ROWS = (
    "axs6",
    "  + the driver's delay without load",
    "  + pin capacitances of each edge",
    "  + unexplained",
    "OpenSTA, no wires",
    "  + the library's default wire load",
    "OpenSTA, default wire load",
    "OpenSTA + one arc between two pins",
    "  + unexplained",
    "ABC stime",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Delays of mapped designs by three tools.")
    parser.add_argument("--liberty", type=Path, required=True, metavar="FILE")
    liberty = parser.parse_args().liberty
    text = liberty.read_text(encoding="utf-8")
    columns = []
    with tempfile.TemporaryDirectory(prefix="axs6-delays-") as folder:
        for _, unit, fmt, options in DESIGNS:
            made = generate(unit, format=fmt, block=32)
            design = mapped_design(
                made.verilog, made.module, target="generic", liberty=liberty, **options
            )
            columns.append(column(design, text, Path(folder)))
    print(f"{'ps':36}" + "".join(f"{name:>18}" for name, *_ in DESIGNS))
    for name, row in zip(ROWS, zip(*columns, strict=True), strict=True):
        form = "+,.1f" if "+" in name else ",.1f"
        cells = ["-" if value is None else format(value, form) for value in row]
        print(f"{name:36}" + "".join(f"{cell.replace('-0.0', '+0.0'):>18}" for cell in cells))


if __name__ == "__main__":
    main()
