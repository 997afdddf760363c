"""Tasks for other processes, and their results."""

import contextlib
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")

_LOOK_SECONDS = 1
"""Interval between two checks of the workers."""


class PoolTask(ABC, Generic[T]):
    """A piece of work for this process, a child process or a worker of a cluster.

    It is pickled on its way there.
    """

    @abstractmethod
    def outcome(self) -> T | str:
        """The result, or in one line why there is none.

        Raises:
            OtherEnvironmentError: it would not be what the process that asks would get.
            OSError: a file cannot be read, or the cache not be written.
        """

    def sent(self) -> Self:
        """The task as workers in other folders can do it."""
        return self

    def received(self, found: T | str) -> T | str:
        """The result of a task that a worker has run, as this process would give it."""
        return found

    def failure(self, error: OSError, worker: str) -> str:
        """Why a worker cannot be used, in one line."""
        return f"{worker} fails: {error}"


K = TypeVar("K", bound=PoolTask[Any])


class OtherEnvironmentError(Exception):
    """A worker has other sources, tools or files than the process that asks it."""


class LostWorkerError(RuntimeError):
    """A process that measured points was killed from outside."""


def results(
    futures: Mapping[Future[T | str], K], watch: Callable[[], None] | None = None
) -> Generator[tuple[K, T | str], None, None]:
    """The tasks with their outcomes, in order of completion.

    `watch` is called now and then while none comes, and ends the wait by raising.
    """
    try:
        for future in _as_completed(futures, watch):
            yield futures[future], _result(future)
    finally:
        for future in futures:
            future.cancel()


def _as_completed(
    futures: Collection[Future[T | str]], watch: Callable[[], None] | None
) -> Iterator[Future[T | str]]:
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


def _result(future: "Future[T | str]") -> T | str:
    try:
        return future.result()
    except OtherEnvironmentError as error:
        raise RuntimeError(str(error)) from None
    except ImportError as error:
        raise RuntimeError(f'the workers need "axs6[synth]" as installed here: {error}') from error
    except BrokenProcessPool:
        raise LostWorkerError(
            "a process of the sweep was killed, perhaps out of memory; finished points are kept: "
            "run it again with fewer jobs"
        ) from None
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return "the cluster's workers died while they measured it, perhaps out of memory"
        raise


def this_worker() -> str:
    """The name of this machine and, on a cluster, the address of the worker."""
    host = socket.gethostname()
    with contextlib.suppress(ImportError, ValueError):
        from distributed import get_worker

        return f"{get_worker().address} on {host}"
    return host
