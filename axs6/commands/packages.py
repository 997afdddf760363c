"""Checks that the packages of a command are installed, before it begins."""

from importlib.util import find_spec


def need(*packages: str) -> None:
    """Raise ModuleNotFoundError for the first package that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
