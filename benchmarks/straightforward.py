"""Area and delay of the encoder and the decoder beside plain ones, on several targets.

Run with `python benchmarks/straightforward.py`; `--liberty FILE` adds a library. The plain units
are those of `axs6.synth.plain`: whole comparisons, 32 M - M, barrel shifters with sticky bits, a
table of quotients. They are held against the golden model before they are measured.
"""

import argparse
from pathlib import Path
from typing import Any

from axs6.synth.comparison import compare
from axs6.synth.report import AreaReport

BLOCK = 32
UNITS = (("encoder", "bf16"), ("encoder", "fp32"), ("decoder", "bf16"), ("decoder", "fp32"))
TARGETS = ("generic", "sky130")
TIMEOUT = 1200


def figures(report: AreaReport) -> tuple[float, float]:
    """Area, and picoseconds or, where the target has none, levels of gates."""
    assert report.timing is not None
    area = next(iter(report.total.figures.values()))
    return area, report.timing.delay_ps or report.timing.levels or 0


def show(options: dict[str, Any], name: str) -> None:
    print(f"\n{name}, B = {BLOCK}, mapped for area; depth in levels of gates, or ps")
    titles = ("area", "plain", "ratio", "depth", "plain", "ratio")
    print(f"{'':14}" + "".join(f"{title:>10}" for title in titles))
    for unit, fmt in UNITS:
        found = compare(unit, {"block": BLOCK, "dtype": fmt}, **options, timeout=TIMEOUT)
        pairs = zip(figures(found.ours), figures(found.plain), strict=True)
        cells = "".join(f"{a:10,.0f}{b:10,.0f}{a / b:10.3f}" for a, b in pairs)
        print(f"{unit + ' ' + fmt:14}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Units beside plain ones.")
    parser.add_argument("--liberty", type=Path, action="append", default=[], metavar="FILE")
    libraries = parser.parse_args().liberty
    for target in TARGETS:
        show({"target": target}, target)
    for library in libraries:
        show({"liberty": library}, library.name)


if __name__ == "__main__":
    main()
