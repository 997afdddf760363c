"""The command line: `axs6`, one sub-command for each file in `axs6/commands`."""

import sys
import warnings
from importlib import import_module

COMMANDS = ("list", "generate", "validate", "regress", "area", "demo")
"""In the order in which --help shows them; each is a module `axs6.commands.NAME_command`."""


def main() -> None:
    """Run the command line.

    Exit status: 0 for success, 1 where a comparison or a test fails, 2 for bad input or a missing
    tool, with one line that says what is wrong.
    """
    try:
        import typer
    except ModuleNotFoundError:
        sys.exit('axs6: the command line needs more packages: pip install "axs6[cli]"')
    # Amaranth warns of components that a unit with a wrong parameter leaves behind.
    warnings.filterwarnings("ignore", message=".*created but never used")
    app = typer.Typer(
        name="axs6",
        help="Hardware, golden model and verification of the AXS-6 number format.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name in COMMANDS:
        function = import_module(f"axs6.commands.{name}_command").run
        app.command(name)(function)
    try:
        app()
    except ModuleNotFoundError as error:
        _fail(f'the package {error.name} is missing: pip install "axs6[demo]"')
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        _fail(str(error))


def _fail(message: str) -> None:
    line = " ".join(message.split())
    print(f"axs6: {line}", file=sys.stderr)
    sys.exit(2)
