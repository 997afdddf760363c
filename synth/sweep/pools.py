"""Where points are measured: in this process, in child processes or on a Dask cluster."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from urllib.parse import urlsplit

from axs6.synth.sweep.points import Measured, Point
from axs6.synth.sweep.store import environment, measure

CONNECT_SECONDS = 5
"""How long a scheduler has to answer, and then its first worker to be there."""

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
    """A worker has other sources, tools or libraries than the process that asks it."""


def outcome(task: Task) -> Measured | str:
    """What a task measured, or in one line why it could not.

    Raises:
        OtherEnvironmentError: the result would not be that of the process that asks.
    """
    try:
        if environment(task.point) != task.environment:
            raise OtherEnvironmentError(
                f"the worker {socket.gethostname()} must have the same axs6, amaranth, pyosys and "
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
        RuntimeError: the cluster cannot be reached, a worker is of another version, or a child
            process was killed from outside.
    """
    if not tasks or (scheduler is None and min(jobs, len(tasks)) == 1):
        for task in tasks:
            yield task, outcome(task)
        return
    with _cluster(scheduler) if scheduler else _processes(min(jobs, len(tasks))) as pool:
        work = outcome if scheduler else _outcome_in_child
        futures: dict[Future[Measured | str], Task] = {pool.submit(work, t): t for t in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], _result(future)
        finally:
            for future in futures:
                future.cancel()


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


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask cluster as an executor."""
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
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise RuntimeError(f"the Dask scheduler at {address} has no workers") from None
        yield client.get_executor()
