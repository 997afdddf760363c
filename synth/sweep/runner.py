"""Measuring every combination of a unit's parameters."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.wiring import Component, Flow, In, Out

from axs6.golden.arguments import check_integer
from axs6.hw.registry import find
from axs6.synth.energy_stimulus import Stimulus
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis, check_run, flow
from axs6.synth.place import check_place, check_ports
from axs6.synth.process import check_pyosys
from axs6.synth.sweep.axes import parse
from axs6.synth.sweep.cluster import check_address
from axs6.synth.sweep.point_task import PointTask
from axs6.synth.sweep.points import Point, Result, Sweep, all_points
from axs6.synth.sweep.pools import outcomes
from axs6.synth.sweep.store import environment, recall, remember

Progress = Callable[[Result, int, int], None]
"""Called with each result as it comes, how many there are by then, and how many there will be."""


def sweep(
    units: Sequence[str],
    expression: str | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    stimulus: Stimulus | None = None,
    timeout: float = 600,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Sweep:
    """Measure area and timing of units at every combination of some of their parameters.

    Results are cached (`axs6.sim.cache`) under a key of all inputs: an interrupted sweep resumes
    where it stopped, and a repeated one costs nothing. A point that cannot be built or measured
    becomes a result with the reason, and the sweep continues.

    A script that gives `jobs` must have its calls below `if __name__ == "__main__":`, as always
    where Python starts processes.

    Args:
        units: names in `axs6.hw.registry`.
        expression: what varies, as `axs6.synth.sweep.axes.parse` reads it, such as
            `stages=0..4 block=8,16,32`; None for one point of each unit.
        parameters: parameters of every point; others keep their defaults. stimulus: data of
        `axs6.synth.energy.energy`, to measure the energy of every point too. timeout: limit in
        seconds for each synthesis of a point. jobs: points measured in parallel on this machine,
        each in a process of its own; one takes up to two cores. scheduler: address of a Dask
        scheduler, such as `tcp://host:8786`, on whose workers to measure instead; they need the
        same axs6, tools and library, at the same path.
        progress: called with each result as it comes.
        options: of `axs6.synth.flow.Synthesis`, such as `target` and `liberty`.

    Raises:
        ValueError: a malformed expression or address, an unknown unit or parameter, or fewer than
            1 job.
        SynthesisError: pyosys is missing, or an option that no point can be measured with.
        RuntimeError: the cluster cannot be reached, goes away or loses its workers, or a worker
            is of another version or cannot read the library.
        OSError: the cache cannot be written.
    """
    check_integer("jobs", jobs, 1)
    if scheduler is not None:
        check_address(scheduler)
    axes = {} if expression is None else parse(expression, units, parameters)
    points = all_points(units, axes, parameters or {}, Synthesis(**options), stimulus)
    unusable = _unusable(points, timeout)
    results: dict[int, Result] = {}

    def add(index: int, result: Result) -> None:
        results[index] = result
        if progress:
            progress(result, len(results), len(points))

    tasks = []
    for index, point in enumerate(points):
        if known := recall(point):
            add(index, Result(point, known, cached=True))
        elif reason := unusable.get(point.options) or _refused(point):
            add(index, Result(point, reason=reason))
        else:
            tasks.append(PointTask(index, point, timeout, environment(point)))
    with contextlib.closing(outcomes(tasks, jobs, scheduler)) as done:
        for task, found in done:
            if isinstance(found, str):
                add(task.index, Result(task.point, reason=found))
            else:
                remember(task.point, found)
                add(task.index, Result(task.point, found))
    ordered = tuple(results[index] for index in range(len(points)))
    return Sweep(tuple(units), axes, ordered)


def _unusable(points: Sequence[Point], timeout: float) -> dict[Synthesis, str]:
    """The options of points that no design can be measured with, and why.

    Raises:
        SynthesisError: there is no point with others, or pyosys is missing.
    """
    check_pyosys()
    check_run("top", timeout)
    asked = {point.options for point in points}
    reasons = {}
    for options in asked:
        try:
            flow(options)
        except SynthesisError as error:
            reasons[options] = str(error)
    if len(reasons) == len(asked):
        raise SynthesisError(reasons[points[0].options])
    return reasons


def _refused(point: Point) -> str | None:
    """Why a point cannot be built, or is too wide for its target; None if it is neither."""
    try:
        component: Any = find(point.unit).build(**point.parameters)
        if point.options.fmax:
            target = point.options.target
            check_place(target)
            check_ports(target, *(_bits(component, flow) for flow in (In, Out)))
    except (ValueError, SynthesisError) as error:
        return str(error)
    return None


def _bits(component: Component, flow: Flow) -> int:
    """Bits of the ports of a component that go one way."""
    ports = component.signature.flatten(component)
    return sum(len(Value.cast(value)) for _, port, value in ports if port.flow == flow)
