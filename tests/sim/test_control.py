"""Work that ends when nobody waits for it any more."""

import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import pytest

from axs6.hw.registry import UNITS, find
from axs6.sim.batch.engine import BatchModel
from axs6.sim.compiled import Stall
from axs6.sim.control import StoppedError, workers
from axs6.sim.cxxrtl.engine import CxxrtlModel
from axs6.sim.process import child_process, wait

# Parameters of tests/sim/test_batch.py, whose model this is.
UNIT = "decoder"
SMALL: dict[str, Any] = {
    "block": 8,
    **{name: values[-1] for name, values in UNITS[UNIT].samples.items()},
}


def items(count: int) -> dict[str, Any]:
    parameters = UNITS[UNIT].parameters(SMALL)
    return dict(find(UNIT).random(parameters, np.random.default_rng(0), count))


def in_batch() -> object:
    return BatchModel(UNIT, **SMALL).run(items(1000))


def in_cxxrtl() -> object:
    return CxxrtlModel(UNIT, **SMALL).run(items(1000))


def in_child() -> object:
    with child_process(["sleep", "60"], Path(os.devnull), os.environ) as child:
        return wait(child, 60)


@pytest.mark.parametrize("work", [in_batch, in_cxxrtl, in_child])
def test_what_is_stopped_ends(work: Callable[[], object]) -> None:
    if work is not in_child:
        work()
    with workers(1) as pool:
        pool.control.stop = 1
        with pytest.raises(StoppedError):
            pool.submit(work).result()


class AlarmError(Exception):
    pass


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise AlarmError


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_a_compiled_loop(threads: int) -> None:
    model = BatchModel(UNIT, **SMALL)
    given = items(1 << 19)
    cycles: list[int] = []

    def progress(cycle: int) -> None:
        cycles.append(cycle)
        if len(cycles) == 2:
            signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        started = time.monotonic()
        with pytest.raises(AlarmError):
            # Millions of cycles.
            model.run(given, Stall(0.996, 0.996), threads=threads, progress=progress)
        assert time.monotonic() - started < 5
        assert 0 < cycles[0] <= cycles[1]
        assert threads > 1 or cycles[0] < cycles[1]
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_ends_a_compiled_loop_without_progress(threads: int) -> None:
    model = BatchModel(UNIT, **SMALL)
    given = items(1 << 19)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        started = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(AlarmError):
            model.run(given, Stall(0.996, 0.996), threads=threads)
        assert time.monotonic() - started < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_of_work_in_work_ends_both() -> None:
    model = BatchModel(UNIT, **SMALL)
    given = items(1 << 19)
    started = time.monotonic()
    inner = []

    def outer() -> NoReturn:
        with workers(2) as pool:
            inner.extend(pool.submit(model.run, given, Stall(0.996, 0.996)) for _ in range(3))
            while not pool.control.cycle:
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert time.monotonic() - started < 5
    assert all(each.cancelled() or isinstance(each.exception(), StoppedError) for each in inner)


def test_a_failure_of_one_thread_ends_the_others() -> None:
    def work(number: int) -> int:
        if number:
            raise ValueError("of 1")
        with child_process(["sleep", "60"], Path(os.devnull), os.environ) as child:
            return wait(child, 60)

    started = time.monotonic()
    with pytest.raises(ValueError, match="of 1"), workers(2) as pool:
        pool.map(work, range(2))
    assert time.monotonic() - started < 10


def test_threads_wait_for_the_next_work() -> None:
    def failing() -> NoReturn:
        raise ValueError("failed")

    with workers(1) as pool, workers(1) as other:
        used = {each.submit(threading.current_thread).result() for each in (pool, other)}
        assert len(used) == 2
        with pytest.raises(ValueError, match="failed"):
            pool.map(lambda _: failing(), range(1))
    with workers(1) as pool:
        assert pool.submit(threading.current_thread).result() in used


def test_work_that_has_not_begun_is_cancelled_at_the_end() -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        time.sleep(0.1)

    with workers(1) as pool:
        first, second = pool.submit(work), pool.submit(work)
        begun.wait()
    assert first.done()
    assert [each.cancelled() for each in (first, second)] == [False, True]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    in_batch()
    child = multiprocessing.get_context("fork").Process(target=in_batch)
    child.start()
    child.join(30)
    child.kill()
    assert child.exitcode == 0


def test_a_child_has_its_seconds() -> None:
    with child_process(["sleep", "60"], Path(os.devnull), os.environ) as child:
        started = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired):
            wait(child, 0.3)
        assert 0.3 <= time.monotonic() - started < 5
    with child_process(["sh", "-c", "exit 3"], Path(os.devnull), os.environ) as child:
        assert wait(child, 60) == 3
