"""Progress of the command line on stderr."""

import logging
import sys

from axs6.terminal import shown

_log = logging.getLogger("axs6")


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print a step as it is, and a warning as a message of the command line."""
        before = "axs6: " if record.levelno >= logging.WARNING else ""
        print(f"{before}{shown(record.getMessage())}", file=sys.stderr, flush=True)


def say_steps() -> None:
    """Print a line on stderr for each build and step, and for each warning.

    On a terminal, which shows progress, steps are not printed. In Python the logger `axs6` has
    them, at level INFO.
    """
    _log.handlers = [_Stderr()]
    _log.setLevel(logging.WARNING if sys.stderr.isatty() else logging.INFO)
