"""Where points are measured: in this process, in child processes or on a Dask cluster."""

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from axs6.synth.sweep.points import Measured, Point
from axs6.synth.sweep.store import environment, measure

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 5
"""How long a scheduler has to answer, and then its first worker to be there."""

WITHOUT_WORKERS_SECONDS = 30
"""How long a cluster may be without workers before a sweep on it ends."""

_LOOK_SECONDS = 1
"""How long between two looks at a cluster's workers."""

_CLEAN_UP_SECONDS = 10
"""How long a worker may take to end what it has started before it ends all the same."""

_PROTOCOLS = ("tcp", "tls", "ucx", "ws", "wss")


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


def outcome(task: Task) -> Measured | str:
    """What a task measured, or in one line why it could not.

    Raises:
        OtherEnvironmentError: the result would not be that of the process that asks.
        OSError: the library cannot be read, or the cache not be written.
    """
    try:
        if environment(task.point) != task.environment:
            raise OtherEnvironmentError(
                f"the worker {_this_worker()} must have the same axs6, amaranth, pyosys and "
                "library as this machine and does not"
            )
        return measure(task.point, task.timeout)
    except (ValueError, RuntimeError) as error:
        return " ".join(str(error).split())


def outcomes(
    tasks: Sequence[Task], jobs: int, scheduler: str | None
) -> Generator[tuple[Task, Measured | str], None, None]:
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
        yield from _on_cluster(tasks, scheduler)
    elif min(jobs, len(tasks)) == 1:
        for task in tasks:
            yield task, outcome(task)
    else:
        with _processes(min(jobs, len(tasks))) as pool:
            futures = {pool.submit(_outcome_in_child, task): task for task in tasks}
            yield from _results(futures)


def _results(
    futures: dict[Future[Measured | str], Task], watch: Callable[[], None] | None = None
) -> Generator[tuple[Task, Measured | str], None, None]:
    """The tasks with their outcomes as they come; `watch` as for `_as_completed`."""
    try:
        for future in _as_completed(futures, watch):
            yield futures[future], _result(future)
    finally:
        for future in futures:
            future.cancel()


def _as_completed(
    futures: Collection[Future[Measured | str]], watch: Callable[[], None] | None
) -> Iterator[Future[Measured | str]]:
    """Futures as they are done; `watch` is called now and then, and ends the wait by raising."""
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
        raise RuntimeError(
            "a process of the sweep was killed, out of memory perhaps; the points it had finished "
            "are kept: run it again with fewer jobs"
        ) from None
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return "the cluster's workers died while they measured it, out of memory perhaps"
        raise


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    """A pool of processes that end, with what they have started, when this one does.

    Each watches a pipe whose other end is here alone: it closes when this process ends, however
    it does.
    """
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, initializer=_prepare, initargs=(reader,))
    try:
        yield pool
    except BaseException:
        writer.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        writer.close()
        reader.close()


def _prepare(parent: Connection) -> None:
    """Let a worker end as soon as the pipe closes, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: Connection) -> None:
    """Interrupt the work when the pipe closes, until the process has ended."""
    with contextlib.suppress(EOFError, OSError):
        parent.recv()
    deadline = time.monotonic() + _CLEAN_UP_SECONDS
    while time.monotonic() < deadline:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
    os._exit(1)


def _outcome_in_child(task: Task) -> Measured | str:
    """As `outcome`; `_end` ends the process, where the pool would go on with the next task."""
    try:
        return outcome(task)
    except SystemExit:
        os._exit(1)


def _end(number: int, frame: FrameType | None) -> None:
    """Raise SystemExit, once, and never in a `__del__`: Python ignores exceptions there."""
    while frame:
        if frame.f_code.co_name == "__del__":
            return
        frame = frame.f_back
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def check_address(address: str) -> None:
    """Raise ValueError for what cannot be the address of a Dask scheduler."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        complete = parts.scheme in _PROTOCOLS and parts.hostname and parts.port
    except ValueError:
        complete = False
    if not complete:
        raise ValueError(f"scheduler must be an address such as tcp://host:8786, not {address!r}")


def _on_cluster(
    tasks: Sequence[Task], address: str
) -> Generator[tuple[Task, Measured | str], None, None]:
    """As `outcomes`, on the workers of a Dask cluster."""
    with _cluster(address) as client:
        try:
            pool = client.get_executor()
            futures = {pool.submit(_outcome_on_worker, _sent(task)): task for task in tasks}
            for task, found in _results(futures, _Workers(client, address).check):
                yield task, _received(task, found)
        except Exception as error:
            if isinstance(error, CancelledError) or client.status != "running":
                raise _gone(address) from None
            raise


@contextlib.contextmanager
def _cluster(address: str) -> Iterator["Client"]:
    """A client of a Dask cluster that has workers."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise RuntimeError(
            'a scheduler needs the package distributed: pip install "axs6[cluster]"'
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise RuntimeError(f"cannot reach a Dask scheduler at {address}: {error}") from None
    try:
        _wait_for_worker(client, address)
        yield client
    finally:
        with _without_logs():
            client.close()


def _wait_for_worker(client: "Client", address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise RuntimeError(f"the Dask scheduler at {address} has no workers") from None
    except OSError:
        raise _gone(address) from None


def _gone(address: str) -> RuntimeError:
    return RuntimeError(
        f"the Dask scheduler at {address} went away or was restarted; the points that were "
        "finished are kept: run it again when it is back"
    )


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Without what distributed logs, such as tracebacks when it closes a lost connection."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


class _Workers:
    """The workers of a cluster, whose absence is noticed."""

    def __init__(self, client: "Client", address: str) -> None:
        self._client = client
        self._address = address
        self._gone_since: float | None = None

    def check(self) -> None:
        """Raise RuntimeError when all looks have found none for too long."""
        now = time.monotonic()
        if _count_workers(self._client):
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= WITHOUT_WORKERS_SECONDS:
            raise RuntimeError(
                f"the Dask scheduler at {self._address} has shown no workers for "
                f"{WITHOUT_WORKERS_SECONDS:g} s; the points that were finished are kept: run it "
                "again when there are some"
            )


def _count_workers(client: "Client") -> int:
    """How many workers a cluster has; 0 where its scheduler does not say."""
    scheduler = client.scheduler
    if scheduler is None:
        return 0
    try:
        return len(client.sync(scheduler.ncores, callback_timeout=CONNECT_SECONDS))
    except OSError:
        return 0


def _sent(task: Task) -> Task:
    """A task as workers in other folders can do it: with the whole path of its library."""
    library = task.point.options.get("liberty")
    if library is None:
        return task
    options = {**task.point.options, "liberty": library.absolute()}
    return replace(task, point=replace(task.point, options=options))


def _received(task: Task, found: Measured | str) -> Measured | str:
    """What a worker says of a task that was sent, with the library as the task has it."""
    library = task.point.options.get("liberty")
    if library is None:
        return found
    if isinstance(found, str):
        return found.replace(str(library.absolute()), str(library))
    return replace(found, report=replace(found.report, library=str(library)))


def _outcome_on_worker(task: Task) -> Measured | str:
    """As `outcome`, of a worker of a cluster, which says by name what it cannot use."""
    try:
        return outcome(task)
    except OSError as error:
        worker = f"the worker {_this_worker()}"
        library = task.point.options.get("liberty")
        if library and error.filename == str(library):
            message = f"{worker} cannot read the library {library}: {error.strerror}"
        else:
            message = f"{worker} fails: {error}"
        raise OtherEnvironmentError(message) from None


def _this_worker() -> str:
    """The name of this machine and, on a cluster, the address of the worker."""
    host = socket.gethostname()
    with contextlib.suppress(ImportError, ValueError):
        from distributed import get_worker

        return f"{get_worker().address} on {host}"
    return host
