"""Printing: text is safe for every terminal, and no locale or closed pipe stops it."""

import codecs
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BOXES = {"─": "-", "│": "|", **dict.fromkeys("┌┬┐├┼┤└┴┘", "+")}
"""Stand-ins for lines of boxes, of which other locales than UTF-8 have none."""

_ERRORS = "axs6.shown"


def shown(text: str, keep: str = "\n") -> str:
    r"""A text with escapes such as `\x1b` for characters that do not print, but those of `keep`.

    Names from files may have such ones: a terminal would take them for commands.
    """
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() or x in keep else _escape(x) for x in text)


@contextmanager
def printing() -> Iterator[None]:
    """A context in which every character can be printed, and which a closed pipe ends.

    Characters that the locale does not have become escapes. The status is then that of SIGPIPE, as
    where other programs print into a closed pipe, and nothing is said.
    """
    codecs.register_error(_ERRORS, _stand_ins)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)
    try:
        try:
            yield
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        # Click and rich make SystemExit of it.
        if not isinstance(end, BrokenPipeError) and not isinstance(
            end.__context__, BrokenPipeError
        ):
            raise
        # Python flushes what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _stand_ins(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_BOXES.get(x) or _escape(x) for x in text), error.end


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode()
