"""Points to measure, wherever that is done, and what comes of them."""

import contextlib
import socket
from collections.abc import Callable, Collection, Generator, Iterator
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from axs6.synth.sweep.points import Measured, Point
from axs6.synth.sweep.store import environment, measure

_LOOK_SECONDS = 1
"""How long between two looks at what does the tasks."""


@dataclass(frozen=True)
class Task:
    """A point to measure within `timeout` seconds, and the `environment` that asks for it.

    `index` is the point's place in the sweep.
    """

    index: int
    point: Point
    timeout: float
    environment: str


class OtherEnvironmentError(Exception):
    """A worker has other sources, tools or files than the process that asks it."""


class LostWorkerError(RuntimeError):
    """A process that measured points was killed from outside."""


def outcome(task: Task) -> Measured | str:
    """What a task measured, or in one line why it could not.

    Raises:
        OtherEnvironmentError: the result would not be that of the process that asks.
        OSError: the library cannot be read, or the cache not be written.
    """
    try:
        if environment(task.point) != task.environment:
            raise OtherEnvironmentError(
                f"the worker {this_worker()} must have the same axs6, amaranth, pyosys and "
                "library as this machine and does not"
            )
        return measure(task.point, task.timeout)
    except (ValueError, RuntimeError) as error:
        return " ".join(str(error).split())


def results(
    futures: dict[Future[Measured | str], Task], watch: Callable[[], None] | None = None
) -> Generator[tuple[Task, Measured | str], None, None]:
    """The tasks with their outcomes as they come.

    `watch` is called now and then while none comes, and ends the wait by raising.
    """
    try:
        for future in _as_completed(futures, watch):
            yield futures[future], _result(future)
    finally:
        for future in futures:
            future.cancel()


def _as_completed(
    futures: Collection[Future[Measured | str]], watch: Callable[[], None] | None
) -> Iterator[Future[Measured | str]]:
    """Futures as they are done; `watch` as for `results`."""
    left = set(futures)
    while left:
        try:
            for future in as_completed(left, _LOOK_SECONDS if watch else None):
                left.discard(future)
                yield future
        except TimeoutError:
            if watch:
                watch()


def _result(future: "Future[Measured | str]") -> Measured | str:
    try:
        return future.result()
    except OtherEnvironmentError as error:
        raise RuntimeError(str(error)) from None
    except ImportError as error:
        raise RuntimeError(f'the workers need "axs6[synth]" as installed here: {error}') from error
    except BrokenProcessPool:
        raise LostWorkerError(
            "a process of the sweep was killed, out of memory perhaps; the points it had finished "
            "are kept: run it again with fewer jobs"
        ) from None
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return "the cluster's workers died while they measured it, out of memory perhaps"
        raise


def this_worker() -> str:
    """The name of this machine and, on a cluster, the address of the worker."""
    host = socket.gethostname()
    with contextlib.suppress(ImportError, ValueError):
        from distributed import get_worker

        return f"{get_worker().address} on {host}"
    return host
