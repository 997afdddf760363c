"""The command line: `axs6`, one sub-command for each file in `axs6/commands`."""

import os
import signal
import sys
from importlib import import_module
from typing import Any, NoReturn

from axs6.install import install_command

COMMANDS = {
    "list": "hw",
    "generate": "hw",
    "validate": "hw",
    "regress": "sim",
    "simulate": "hw",
    "area": "synth",
    "encode": "files",
    "decode": "files",
    "info": "files",
    "study": "study",
    "demo": "demo",
}
"""The extra that holds the packages of each command, in the order in which --help shows them.

Each is a module `axs6.commands.NAME_command`, whose `run` is the command, or whose `app` holds its
sub-commands."""

TRACEBACK = "AXS6_TRACEBACK"
"""Environment variable that shows the traceback of an error instead of one line."""


def main() -> None:
    """Run the command line.

    Exit status: 0 for success, 1 where a comparison or a test fails, 2 for bad input or a missing
    tool, with one line that says what is wrong.
    """
    # A signal that ends the process must still end its children.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))
    try:
        import typer
    except ModuleNotFoundError:
        _fail(f"the command line needs more packages: {install_command('cli')}")
    app = typer.Typer(
        name="axs6",
        help="Hardware, golden model and verification of the AXS-6 number format.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name in COMMANDS:
        module = import_module(f"axs6.commands.{name}_command")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.run)
    usage_error: Any = typer.BadParameter.__bases__[0]
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        sys.exit(130)
    except usage_error as error:
        _fail(error.format_message())
    except (ValueError, TypeError, OSError, RuntimeError, ModuleNotFoundError) as error:
        if os.environ.get(TRACEBACK):
            raise
        if isinstance(error, ModuleNotFoundError):
            extra = next((COMMANDS[name] for name in sys.argv if name in COMMANDS), "cli")
            package = str(error.name).partition(".")[0]
            _fail(f"the package {package} is missing: {install_command(extra)}")
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    line = " ".join(message.split())
    print(f"axs6: {line}", file=sys.stderr)
    sys.exit(2)
