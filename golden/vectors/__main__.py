"""`python -m axs6.golden.vectors DIRECTORY`: write the test vectors."""

import sys
from collections.abc import Sequence
from pathlib import Path

from axs6.golden.vectors import write_vectors


def main(arguments: Sequence[str]) -> int:
    """Write all files and say what is in them; 1 if the models differ, 2 for bad input."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("axs6: needed: python -m axs6.golden.vectors DIRECTORY", file=sys.stderr)
        return 2
    try:
        for path, count in write_vectors(Path(arguments[0])):
            print(f"wrote {path}: {count:,} cases")
    except (OSError, RuntimeError) as error:
        print(f"axs6: {error}", file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
