"""Signals that end the command line: with status 128 + their number, and without a message."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from axs6.replacing import remove_partial_files

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_AGAIN_SECONDS = 0.01

_received: int | None = None


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """A context that a signal of `ENDING` leaves with SystemExit, so that all is cleaned up.

    Whatever imports and libraries make of that exception, the context ends with the signal's
    status. A signal that was ignored before stays so. After the context, a signal ends the process
    at once.
    """
    numbers = [each for each in ENDING if signal.getsignal(each) != signal.SIG_IGN]
    for number in (*numbers, signal.SIGALRM):
        signal.signal(number, _end)
    sys.unraisablehook = _swallowed
    try:
        yield
    except BaseException:
        check_ended()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in numbers:
            signal.signal(number, _leave)
        remove_partial_files()


def check_ended() -> None:
    """Raise SystemExit with the status of the signal that was received, if there was one."""
    if _received is not None:
        sys.exit(128 + _received)


def _end(number: int, frame: FrameType | None) -> None:
    global _received  # noqa: PLW0603  a process has one state
    if number != signal.SIGALRM:
        _received = number
    check_ended()


def _leave(number: int, frame: FrameType | None) -> None:
    remove_partial_files()
    os._exit(128 + number)


def _swallowed(unraisable: Any) -> None:
    """Say nothing after a signal; one that came while Python ignores exceptions comes again."""
    if _received is None:
        sys.__unraisablehook__(unraisable)
    elif isinstance(unraisable.exc_value, SystemExit):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
