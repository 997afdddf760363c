"""Measurement of the formats of the Pareto study, into a file from which a stopped run resumes."""

import contextlib
import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from axs6.golden.arguments import check_integer
from axs6.hw.registry import find
from axs6.studies.pareto.data import OPTIONS, Conditions, FormatRow, read_rows, write_rows
from axs6.studies.qsnr import study_qsnr
from axs6.synth.flow import Synthesis
from axs6.synth.process import check_pyosys
from axs6.synth.sweep.point_task import PointTask
from axs6.synth.sweep.points import Measured, Point
from axs6.synth.sweep.pools import outcomes
from axs6.synth.sweep.store import environment
from axs6.synth.sweep.tasks import LostWorkerError

Progress = Callable[[str, int, int], None]
"""Called with a format that was measured, how many there are by then, and how many there will be"""

TIMEOUT = 1800.0
"""Seconds that the synthesis of one format may take."""

_log = logging.getLogger("axs6")


def point_of(name: str, reduction: int) -> Point:
    """The dot product of a format: r lanes in one cycle, and the shared-microexponents paper's
    accumulator.

    Raises:
        ValueError: there is no hardware for it.
    """
    unit = find("dot")
    accumulator = f"paper,reduction={reduction}"
    parameters = unit.parameters({"format": name, "accumulator": accumulator})
    unit.build(**parameters)
    return Point(unit.name, parameters, Synthesis(**OPTIONS), between_registers=True)


def measure(
    path: Path,
    names: Sequence[str],
    conditions: Conditions,
    *,
    order: Sequence[str] = (),
    again: bool = False,
    most: int | None = None,
    jobs: int = 1,
    progress: Progress = lambda name, done, total: None,
) -> dict[str, str]:
    """Measure formats without a row in a file, and write the file after each.

    A row counts if its conditions match. A format without hardware gets a row with the reason. A
    format whose synthesis fails gets none, and is measured in the next run.

    Args:
        path: the file, which need not be there.
        names: the formats, in the order in which they are measured.
        conditions: of this installation.
        order: order of the file. again: whether to measure formats that it has again. most: maximum
        number of formats to measure; None for all. jobs: points measured in parallel. progress:
        called after each.

    Returns:
        The formats whose synthesis failed, and why.

    Raises:
        ValueError: fewer than 1 job, a file that is none of this study, or that another run
            writes.
        RuntimeError: pyosys is missing, or processes are killed again and again.
        OSError: the file or the cache cannot be written.
    """
    check_integer("jobs", jobs, 1)
    check_pyosys()
    failed: dict[str, str] = {}
    with _alone(path):
        rows = read_rows(path)
        known = {name for name, row in rows.items() if row.conditions == conditions and not again}
        missing = [name for name in names if name not in known]
        missing = missing[: len(missing) if most is None else most]
        for done, (name, found) in enumerate(_rows(missing, conditions, jobs), 1):
            if isinstance(found, str):
                failed[name] = found
            else:
                rows[name] = found
                write_rows(path, rows, order)
            progress(name, done, len(missing))
    return failed


def _rows(
    names: Sequence[str], conditions: Conditions, jobs: int
) -> Iterator[tuple[str, FormatRow | str]]:
    """The rows of formats as they are measured, first formats without hardware; or the reason of a
    failure.

    If a process is killed, its formats are measured again, once.
    """
    points = {}
    for name in names:
        try:
            points[name] = point_of(name, conditions.reduction)
        except ValueError as error:
            yield name, FormatRow(name, conditions, reason=" ".join(str(error).split()))
    lost = False
    while points:
        listed = list(points.items())
        tasks = [PointTask(i, x, TIMEOUT, environment(x)) for i, (_, x) in enumerate(listed)]
        try:
            with contextlib.closing(outcomes(tasks, jobs, None)) as ended:
                for task, found in ended:
                    name = listed[task.index][0]
                    del points[name]
                    lost = False
                    yield name, found if isinstance(found, str) else _row(name, conditions, found)
        except LostWorkerError:
            if lost:
                raise
            lost = True
            _log.warning("a process was killed: measuring its formats again")


def _row(name: str, conditions: Conditions, measured: Measured) -> FormatRow:
    """The row of a measured format."""
    report, figures = measured.report, measured.figures
    (quality,) = study_qsnr([name], conditions.vectors).rows
    return FormatRow(
        name,
        conditions,
        verilog=hashlib.sha256(measured.design.verilog.encode()).hexdigest()[:16],
        yosys=report.tools["yosys"],
        area=figures["area"],
        sequential_area=figures["sequential_area"],
        flip_flops=int(figures["flip_flops"]),
        delay_ps=figures["delay_ps"],
        qsnr_db=round(quality.qsnr_db, 4),
    )


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other runs from the files of a folder.

    Raises:
        ValueError: one is at work there.
    """
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(f"another run of the study is writing {path}: wait for it") from None
    finally:
        os.close(folder)
