"""Threads that end, compiled loops included, if the waiting thread is interrupted."""

import contextlib
import ctypes
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_LOOK_SECONDS = 0.1

Progress = Callable[[int], object]
"""Called now and then with the furthest cycle that was seen of the compiled loops."""


class StoppedError(RuntimeError):
    """The work was stopped, since nobody waits for it any more."""


class Control(ctypes.Structure):
    """The struct `Control` of `control.hpp`."""

    _fields_ = (("stop", ctypes.c_int32), ("cycle", ctypes.c_int64))


_idle: defaultdict[int, list[ThreadPoolExecutor]] = defaultdict(list)
"""Threads that wait for work, by their number: to start one takes as long as a short run."""

os.register_at_fork(after_in_child=_idle.clear)  # a child process has none of its parent's threads

_control: ContextVar[Control | None] = ContextVar("control", default=None)
"""The control of this thread's work; None for threads outside `Workers`."""


class Workers:
    """Threads, as `workers` makes them.

    Args:
        pool: the threads; None to work in the thread that asks.
        control: what they look at.
        progress: of `map`.
    """

    def __init__(
        self, pool: ThreadPoolExecutor | None, control: Control, progress: Progress | None
    ) -> None:
        self._pool = pool
        self._progress = progress
        self._unfinished: set[Future[Any]] = set()
        self.control = control

    def submit(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """The same as `submit` of an executor."""
        context = copy_context()
        context.run(_control.set, self.control)
        if self._pool is not None:
            future = self._pool.submit(context.run, work, *arguments)
            self._unfinished.add(future)
            future.add_done_callback(self._unfinished.discard)
            return future
        done: Future[R] = Future()
        done.set_result(work(*arguments))
        return done

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """The outcomes of all items, in order, unless the work on one of them raises."""
        futures = [self.submit(work, item) for item in items]
        seconds = None if self._progress is None else _LOOK_SECONDS
        furthest = 0
        while wait(futures, seconds, FIRST_EXCEPTION).not_done:
            if any(future.done() and future.exception() for future in futures):
                break
            if self._progress is not None:
                furthest = max(furthest, self.control.cycle)  # the threads write it in turn
                self._progress(furthest)
        failed = [future for future in futures if future.done() and future.exception()]
        return [future.result() for future in failed or futures]

    def finish(self) -> None:
        """Cancel what has not begun, and wait for what has."""
        unfinished = list(self._unfinished)
        for future in unfinished:
            future.cancel()
        wait(unfinished)


@contextlib.contextmanager
def workers(threads: int, progress: Progress | None = None) -> Iterator[Workers]:
    """Threads whose work ends with the context.

    An exception, such as that of an interrupt, stops the compiled loops and child processes in
    them first. One thread of another one's work is that one, and stops with it.

    Args:
        threads: how many.
        progress: called while `Workers.map` waits.
    """
    outer = _control.get()
    control = outer or Control()
    if outer and threads == 1:
        yield Workers(None, control, progress)
        return
    pool = _taken(threads)
    given = Workers(pool, control, progress)
    try:
        yield given
    except BaseException:
        if not outer:
            control.stop = 1
        raise
    finally:
        given.finish()
        _idle[threads].append(pool)


def in_threads(
    work: Callable[[T], R], items: Iterable[T], threads: int, progress: Progress | None = None
) -> list[R]:
    """The outcomes of all items, in order: worked on by the caller, or by several threads.

    The work looks at `check_stopped` or `reached` now and then: threads stop there, and the caller
    by itself.

    Args:
        work: on an item.
        items: for it.
        threads: how many; 1 is the caller's.
        progress: called while several threads work.
    """
    if threads == 1:
        return [work(item) for item in items]
    with workers(threads, progress) as pool:
        return pool.map(work, items)


def _taken(threads: int) -> ThreadPoolExecutor:
    """Threads that nobody else uses."""
    try:
        return _idle[threads].pop()
    except IndexError:
        return ThreadPoolExecutor(threads)


def call(library: ctypes.CDLL, function: str, *arguments: Any) -> Any:
    """Call a function of a library that was compiled with `control_header`.

    Raises:
        StoppedError: it was stopped before its end.
    """
    control = _control.get()
    library.axs6_control(None if control is None else ctypes.byref(control))
    outcome = getattr(library, function)(*arguments)
    check_stopped()
    return outcome


def reached(cycle: int) -> None:
    """Tell the thread that waits for this one how far a compiled loop has come.

    Raises:
        StoppedError: nobody waits any more.
    """
    control = _control.get()
    if control is not None:
        control.cycle = cycle
    check_stopped()


def check_stopped() -> None:
    """Raise StoppedError where nobody waits for the work of this thread any more."""
    control = _control.get()
    if control is not None and control.stop:
        raise StoppedError("the work was stopped")


def control_header() -> dict[str, str]:
    """The C++ header, by name."""
    path = Path(__file__).with_name("control.hpp")
    return {path.name: path.read_text()}
