"""`axs6 simulate`."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import RESULTS, UNIT_OPTIONS, Unit, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.hw.core.layouts import Field
    from axs6.tables import Table

EXTRA = "hw"

ENGINES = ("batch", "cxxrtl")
WINDOW = "0:1000"


@with_options(parameters=UNIT_OPTIONS, results=RESULTS)
def run(
    unit: Unit,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            help="FIELD=FILE.npy, FILE.npz with all fields, or FILE.npy for a unit with one field.",
            metavar="FILE",
        ),
    ],
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", help="Files for the results, in the same forms.", metavar="FILE"
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="batch or cxxrtl.", show_default="batch, or cxxrtl with --vcd"),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the batch engine.")] = None,
    vcd: Annotated[
        Path | None, typer.Option(help="Write a waveform of every signal to this file.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help="Cycles of the waveform; without --output the run ends with them.",
            metavar="FIRST:END",
            show_default=WINDOW,
        ),
    ] = None,
    saif: Annotated[
        Path | None,
        typer.Option(
            help="Write the switching of every signal to this file, as `axs6 generate` names them."
        ),
    ] = None,
    *,
    parameters: dict[str, Any],
    results: dict[str, Any],
) -> None:
    """Run arrays through a unit in a cycle-accurate simulator, and report cycles and speed.

    Fields have the names of `axs6 generate`'s manifest. The first axis is the items; fields of one
    block may have more axes, and any multiple of the block in the last axis. Floating-point fields
    and scales are float32 or float16 arrays; BF16 is uint16 bit patterns. Other fields are
    integers. The scale of a tensor may be one number.

    Example: axs6 simulate encoder --input x.npy --output blocks.npz

    Example: axs6 simulate encoder --input x.npy --saif encoder.saif
    """
    from axs6.commands.arrays import file_contents, input_files, output_files, read_items
    from axs6.commands.output import print_table, write_file
    from axs6.commands.results import ResultFiles
    from axs6.golden.arguments import check_integer
    from axs6.hw.core.layouts import port_fields
    from axs6.hw.registry import find_with_streams
    from axs6.sim.words import check_items

    chosen = _engine(engine, threads, vcd, window)
    if saif is not None and chosen != "batch":
        raise ValueError(f"--saif needs --engine batch, not {chosen}")
    cycles = _window(window or WINDOW)
    entry = find_with_streams(unit)
    # Names of signals are of use beside the Verilog, which has the view for synthesis.
    parameters = (entry.simulated if saif is None else entry.parameters)(parameters)
    component: Any = entry.build(**parameters)
    if threads is not None:
        check_integer("threads", threads, 1)
    taken, given_back = port_fields(component)
    items = read_items(inputs, taken, parameters)
    count = check_items(items, taken)
    files = output_files(outputs or [], given_back)
    written = ResultFiles(**results)
    written.check(*files, vcd, saif, inputs=input_files(inputs, taken))
    out = written.console()
    limit = cycles[1] if vcd is not None and not outputs else None
    if chosen == "batch":
        done, seconds = _batch(out, unit, parameters, items, 1 if threads is None else threads)
    else:
        done, seconds = _cxxrtl(out, unit, parameters, items, vcd, cycles, limit)
    macs = 0 if done.cycles == limit else count * products(taken)
    figures = {
        "unit": unit,
        "parameters": parameters,
        "engine": chosen,
        "items": count,
        **_speeds(done, macs, seconds),
    }
    for path, content in file_contents(files, done.outputs, parameters).items():
        write_file(path, content)
    if saif is not None:
        write_file(saif, _switching(out, unit, parameters, items))
    table = _table(figures)
    print_table(out, table)
    written.write(figures, table)
    for path in (*files, *filter(None, (vcd, saif))):
        out.print(f"wrote {path}")


def _speeds(done: Any, macs: int, seconds: float) -> dict[str, Any]:
    """Outputs, cycles and speeds of a run; `macs` is 0 if its MACs are unknown."""
    return {
        "outputs": len(next(iter(done.outputs.values()))),
        "copies": getattr(done, "copies", 1),
        "cycles": done.cycles,
        "seconds": seconds,
        "cycles_per_second": done.cycles / seconds,
        "macs_per_second": macs / seconds if macs else None,
    }


def products(fields: "Sequence[Field]") -> int:
    """Products of codes in an item: every row of `a` by every row of `b`, if there are both."""
    shapes = {field.name: field.shape for field in fields}
    if not {"a.codes", "b.codes"} <= set(shapes):
        return 0
    (*rows, block), (*columns, _) = shapes["a.codes"], shapes["b.codes"]
    total = block
    for count in (*rows, *columns):
        total *= count
    return total


def _engine(engine: str | None, threads: int | None, vcd: Path | None, window: str | None) -> str:
    """The engine, if it goes with the other options."""
    chosen = engine or ("batch" if vcd is None else "cxxrtl")
    if chosen not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {chosen!r}")
    if vcd is not None and chosen != "cxxrtl":
        raise ValueError(f"--vcd needs --engine cxxrtl, not {chosen}")
    if window is not None and vcd is None:
        raise ValueError("--window needs --vcd")
    if threads is not None and chosen != "batch":
        raise ValueError(f"--threads needs --engine batch, not {chosen}")
    return chosen


def _window(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,15}):(\d{1,15})", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise ValueError(f"window must be FIRST:END, with FIRST below END, not {text!r}")
    return int(match[1]), int(match[2])


def _batch(
    out: "Console", unit: str, parameters: dict[str, Any], items: dict[str, Any], threads: int
) -> tuple[Any, float]:
    """The run and its seconds, without those of the build."""
    from time import perf_counter

    from axs6.sim.batch.engine import BatchModel

    with out.status("compiling the simulator"):
        model = BatchModel(unit, **parameters)
    with cycles_shown(out) as progress:
        start = perf_counter()
        done = model.run(items, threads=threads, progress=progress)
    return done, perf_counter() - start


def _switching(out: "Console", unit: str, parameters: dict[str, Any], items: dict[str, Any]) -> str:
    """SAIF of the unit, which takes all items one after the other."""
    from axs6.hw.registry import find
    from axs6.hw.verilog import module_name
    from axs6.sim.batch.switching import switching_file

    with out.status("counting toggles"):
        component = find(unit).build(**parameters)
        return switching_file(component, module_name(unit, parameters), items)


def _cxxrtl(
    out: "Console",
    unit: str,
    parameters: dict[str, Any],
    items: dict[str, Any],
    vcd: Path | None,
    window: tuple[int, int],
    limit: int | None,
) -> tuple[Any, float]:
    """As `_batch`, for one copy of the design, with a waveform or without."""
    from time import perf_counter

    from axs6.sim.cxxrtl import CxxrtlModel

    with out.status("compiling the simulator"):
        model = CxxrtlModel(unit, **parameters)
        model.build(waves=vcd is not None)
    with cycles_shown(out) as progress:
        start = perf_counter()
        done = model.run(items, vcd=vcd, window=window, limit=limit, progress=progress)
    return done, perf_counter() - start


@contextmanager
def cycles_shown(out: "Console") -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many cycles have been simulated."""
    logging.getLogger("axs6").info("simulating")
    with out.status("simulating") as status:
        yield lambda cycle: status.update(f"simulating, cycle {cycle:,}")


def _table(figures: dict[str, Any]) -> "Table":
    """The figures of a run, in one row."""
    from axs6.tables import Column, Written, table_of, words

    counts = ("items", "outputs", "copies", "cycles")
    columns = [words("unit"), words("engine"), *(Column(name, name, ",") for name in counts)]
    row = dict(figures)
    speeds = (("cycles_per_second", "cycles/s", 3), ("macs_per_second", "MAC/s", 1))
    for name, unit, digits in speeds:
        title = None
        if (speed := figures[name]) is not None:
            number, title = rate(speed, unit, digits)
            row[name] = Written(speed, number)
        columns.append(Column(name, title))
    return table_of([*columns, Column("seconds", None)], [row])


def rate(value: float, unit: str, digits: int) -> tuple[str, str]:
    """A speed, and its unit, with M, k or no prefix, whichever gives a number of 1 or more."""
    factor, prefix = next(
        (each for each in ((1e6, "M "), (1e3, "k ")) if value >= each[0]), (1, "")
    )
    return f"{value / factor:,.{digits}f}", f"{prefix}{unit}"
