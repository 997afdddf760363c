"""The command that installs what is missing."""

from pathlib import Path


def install_command(extra: str) -> str:
    """A command that installs an extra: of the checkout that this is, or of the installed package.

    Pip takes the packages of an extra from the metadata of `axs6` as it is installed, so that the
    name alone is enough outside a checkout.
    """
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file():
        return f'pip install -e "{checkout}[{extra}]"'
    return f'pip install "axs6[{extra}]"'
