"""Pools for work: this process, child processes or a Dask cluster."""

from collections.abc import Generator, Sequence
from typing import Any

from axs6.synth.sweep.cluster import on_cluster
from axs6.synth.sweep.processes import in_processes
from axs6.synth.sweep.tasks import K


def outcomes(
    tasks: Sequence[K], jobs: int, scheduler: str | None
) -> Generator[tuple[K, Any], None, None]:
    """Do tasks and yield each with its outcome as soon as that is known.

    When the iteration is ended early, by an interrupt for example, no child process stays; what
    runs on a cluster at that time runs to its end there.

    Args:
        tasks: what to do.
        jobs: how many at a time on this machine.
        scheduler: address of a Dask scheduler on whose workers to do them instead.

    Raises:
        RuntimeError: the cluster cannot be reached, goes away or loses its workers, a worker is of
            another version or cannot read the library, or a child process was killed from outside.
    """
    if not tasks:
        return
    if scheduler:
        yield from on_cluster(tasks, scheduler)
    elif min(jobs, len(tasks)) == 1:
        for task in tasks:
            yield task, task.outcome()
    else:
        yield from in_processes(tasks, min(jobs, len(tasks)))
