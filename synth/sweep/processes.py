"""Work done in child processes, which leave nothing behind."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from axs6.synth.sweep.tasks import K, PoolTask, results

_CLEAN_UP_SECONDS = 10
"""How long a worker may take to end what it has started before it ends all the same."""


def in_processes(tasks: Sequence[K], jobs: int) -> Generator[tuple[K, Any], None, None]:
    """As `axs6.synth.sweep.pools.outcomes`, in child processes."""
    with _processes(jobs) as pool:
        with _interrupts_blocked():
            futures = {pool.submit(_outcome_in_child, task): task for task in tasks}
        yield from results(futures)


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


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A context whose child processes leave Ctrl-C to this one from their first moment on.

    It comes here after the context. Python's own helper process would unblock it when it starts.
    """
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(parent: Connection) -> None:
    """Let a worker end as soon as the pipe closes."""
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


def _outcome_in_child(task: PoolTask[Any]) -> Any:
    """Do a task; `_end` ends the process here, where the pool would go on with the next task."""
    try:
        return task.outcome()
    except SystemExit:
        os._exit(1)


def _end(number: int, frame: FrameType | None) -> None:
    """End the task that runs here by SystemExit, once; at other moments the signal comes again.

    Python ignores exceptions in a `__del__`, a process that is being started would not be known
    to those who end it, and half a result would let the pool wait for the rest.
    """
    while frame:
        code = frame.f_code
        if code.co_name == "__del__" or code is subprocess.Popen.__init__.__code__:
            return
        if code is _outcome_in_child.__code__:
            signal.signal(number, signal.SIG_IGN)
            sys.exit(128 + number)
        frame = frame.f_back
