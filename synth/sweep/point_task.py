"""A point of a sweep as a task for other processes."""

from dataclasses import dataclass, replace
from typing import Self

from axs6.synth.sweep.points import Measured, Point
from axs6.synth.sweep.store import environment, measure
from axs6.synth.sweep.tasks import OtherEnvironmentError, PoolTask, this_worker


@dataclass(frozen=True)
class PointTask(PoolTask[Measured]):
    """A point to measure within `timeout` seconds, and the `environment` that asks for it.

    `index` is the point's place in the sweep.
    """

    index: int
    point: Point
    timeout: float
    environment: str

    def outcome(self) -> Measured | str:
        """The measurement, or in one line why it failed; raises as `PoolTask`."""
        try:
            if environment(self.point) != self.environment:
                raise OtherEnvironmentError(
                    f"the worker {this_worker()} must have the same axs6, amaranth, pyosys and "
                    "library as this machine and does not"
                )
            return measure(self.point, self.timeout)
        except (ValueError, RuntimeError) as error:
            return " ".join(str(error).split())

    def sent(self) -> Self:
        """The task with the whole path of its library."""
        library = self.point.options.liberty
        if library is None:
            return self
        options = replace(self.point.options, liberty=library.absolute())
        return replace(self, point=replace(self.point, options=options))

    def received(self, found: Measured | str) -> Measured | str:
        """The result from a worker, with the library as this task has it."""
        library = self.point.options.liberty
        if library is None:
            return found
        if isinstance(found, str):
            return found.replace(str(library.absolute()), str(library))
        return replace(found, report=replace(found.report, library=str(library)))

    def failure(self, error: OSError, worker: str) -> str:
        """As `PoolTask.failure`, with the library by name."""
        library = self.point.options.liberty
        if library and error.filename == str(library):
            return f"{worker} cannot read the library {library}: {error.strerror}"
        return super().failure(error, worker)
