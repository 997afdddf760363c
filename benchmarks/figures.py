"""Measures the figures in README and docs that are out of date, and fills the pages.

Run with `make figures`, or `python benchmarks/figures.py`. Each figure is kept in
docs/figures/NAME.json with its commands, the machine, the date and the digests of what it was
measured on; `catalogue` has them all. What is up to date is not measured again, unless --only
or --speeds asks for it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from catalogue import FIGURES
from figure import DATA, Figure
from pages import PAGES, fill

from axs6.replacing import replacing


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write and fill; exit status 1 if a figure cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", action="append", choices=FIGURES, metavar="NAME", help="measure this figure"
    )
    parser.add_argument(
        "--speeds", action="store_true", help="measure all that depends on the machine"
    )
    parser.add_argument(
        "--liberty", type=Path, metavar="FILE", help="library of the figures that need one"
    )
    options = parser.parse_args(arguments)
    if options.only or options.speeds:
        wanted = [
            figure
            for figure in FIGURES.values()
            if figure.name in (options.only or ()) or (options.speeds and figure.varies is not None)
        ]
    else:
        wanted = [each for each in FIGURES.values() if not each.stored() or each.out_of_date()]
    failed = [figure for figure in wanted if not update(figure, options.liberty)]
    fill_pages()
    print(f"{len(wanted) - len(failed)} measured, {len(failed)} failed, {len(FIGURES)} in all")
    return 1 if failed else 0


def update(figure: Figure, library: Path | None) -> bool:
    """Measure a figure and write its file; say so, or what failed."""
    last = figure.stored().get("seconds")
    print(f"{figure.name}: measuring{f', {last} s last time' if last else ''}", flush=True)
    if figure.library and library is None:
        print(f"{figure.name}: needed: --liberty FILE", file=sys.stderr)
        return False
    try:
        kept = figure.measure(library, pictures=True)
    except (OSError, RuntimeError) as error:
        print(f"{figure.name}: {error}", file=sys.stderr)
        return False
    DATA.mkdir(exist_ok=True)
    with replacing(figure.path) as file:
        file.write((json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())
    return True


def fill_pages() -> None:
    """Write the figures that are kept into the pages."""
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = fill(old, FIGURES)
        if new != old:
            with replacing(page) as file:
                file.write(new.encode())
            print(f"filled {page.name}")


if __name__ == "__main__":
    sys.exit(main())
