"""`python -m axs6.golden.vectors DIRECTORY`: write the test vectors."""

import sys
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from axs6.golden.arguments import check_integer
from axs6.golden.formats import format_list
from axs6.golden.vectors import SUBJECTS, format_subjects, write_vectors
from axs6.golden.vectors.formats import CASES, NAMES

NEEDED = "needed: python -m axs6.golden.vectors DIRECTORY [--format FORMAT,...]... [--cases N]"


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what was needed, in place of what argparse makes of it."""
        raise ArgumentError(None, NEEDED)


def main(arguments: Sequence[str]) -> int:
    """Write all files and print the number of cases; 1 if the models differ, 2 for bad input.

    `--format`, names or strings with commas between, or repeated, writes their files alone;
    `--cases` sets the number of random cases of each format.
    """
    parser = _Parser(add_help=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", action="append")
    parser.add_argument("--cases", type=int, default=CASES)
    try:
        given = parser.parse_args(arguments)
        check_integer("cases", given.cases, 1)
        names = format_list(given.format or ())
        subjects = {} if names else dict(SUBJECTS)
        subjects |= format_subjects(names or NAMES, given.cases)
        for path, count in write_vectors(given.folder, subjects):
            print(f"wrote {path}: {count:,} cases")
    except (ArgumentError, OSError, RuntimeError, ValueError) as error:
        print(f"axs6: {error}", file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
