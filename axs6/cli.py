"""The command line: `axs6`. Sub-command NAME is `axs6/commands/NAME_command.py`.

A file there adds its command: `run` is the function, or `app` holds sub-commands, and `EXTRA` is
the extra that holds the packages.
"""

import gc
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, NoReturn

import axs6.commands
from axs6 import __version__
from axs6.install import install_command
from axs6.signals import check_ended, ending
from axs6.terminal import printing, shown

_SUFFIX = "_command"

COLLECTIONS = (50_000, 10, 10)
"""Thresholds of Python's collection of garbage in a process of the command line."""

TRACEBACK = "AXS6_TRACEBACK"
"""Environment variable that shows the traceback of an error instead of one line."""


def main() -> None:
    """Run the command line.

    Exit status: 0 for success, 1 if a comparison or a test fails, 2 for bad input or a missing
    tool, with one line that says what is wrong; 128 + N after signal N (130 for Ctrl-C), without a
    message, and 141 if the pipe it prints to was closed.
    """
    with ending(), printing():
        _main()


def _main() -> None:
    # An elaboration makes millions of objects that live on: with Python's thresholds a third of
    # its time goes into collections that find nothing.
    gc.set_threshold(*COLLECTIONS)
    # Children import nothing from the user's folder, which comes first for `python -m` and `-c`.
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        import typer
    except ModuleNotFoundError:
        _fail(f"the command line needs more packages: {install_command('cli')}")
    from axs6.steps import say_steps

    say_steps()
    known = commands()
    command = command_line(known)
    usage_error: Any = typer.BadParameter.__bases__[0]
    try:
        sys.exit(command(standalone_mode=False))
    except typer.Abort:
        sys.exit(130)
    except usage_error as error:
        # Without a message where the help was printed instead.
        if message := error.format_message():
            _fail(message)
        sys.exit(2)
    except (ValueError, TypeError, OSError, RuntimeError, ModuleNotFoundError) as error:
        if os.environ.get(TRACEBACK):
            raise
        if isinstance(error, ModuleNotFoundError):
            extra = next((known[name].EXTRA for name in sys.argv if name in known), "cli")
            package = str(error.name).partition(".")[0]
            _fail(f"the package {package} is missing: {install_command(extra)}")
        _fail(str(error))


def commands() -> dict[str, Any]:
    """The modules of the sub-commands by their names, in the order in which --help shows them."""
    return {
        each.name.removesuffix(_SUFFIX): import_module(f"axs6.commands.{each.name}")
        for each in iter_modules(axs6.commands.__path__)
        if each.name.endswith(_SUFFIX)
    }


def command_line(known: Mapping[str, Any]) -> Any:
    """The command line with these sub-commands."""
    import typer
    from typer.main import get_command

    app = typer.Typer(
        name="axs6",
        help="Hardware, golden model and verification of AXS-6 and other block formats.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )

    @app.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Show the version.", is_eager=True, callback=_show_version
            ),
        ] = False,
    ) -> None:
        pass

    for name, module in known.items():
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.run)
    command = get_command(app)
    _hide_types_of_flags(command, typer.Context(command))
    return command


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"axs6 {__version__}")
        sys.exit()


def _hide_types_of_flags(command: Any, context: Any) -> None:
    """Show no type beside options without value in the help of a command and its sub-commands.

    Typer shows <bool> there.
    """
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for each in getattr(command, "commands", {}).values():
        _hide_types_of_flags(each, context)


def _fail(message: str) -> NoReturn:
    check_ended()
    line = " ".join(message.split())
    print(f"axs6: {shown(line)}", file=sys.stderr)
    sys.exit(2)
