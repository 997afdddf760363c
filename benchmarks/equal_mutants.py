"""Mutants of Python sources that no test can tell from the source, with the reasons."""

from collections.abc import Mapping

EQUAL: Mapping[str, Mapping[tuple[str, str], str]] = {}
"""For each source: why the mutant with a key, in a line, is equal."""
