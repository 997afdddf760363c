"""Area and delay of the encoder and the decoder beside plain ones, on several targets.

Run with `python benchmarks/straightforward.py`; `--liberty FILE` adds a library. The plain units
are those of `benchmarks/plain.py`: whole comparisons, 32 M - M, barrel shifters with sticky bits, a
table of quotients. They are held against the golden model before they are measured.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.lib import wiring
from plain import PlainDecoder, PlainEncoder

from axs6.hw.registry import find
from axs6.hw.verilog import convert
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError
from axs6.synth.report import AreaReport

BLOCK = 32
UNITS = (("encoder", "bf16"), ("encoder", "fp32"), ("decoder", "bf16"), ("decoder", "fp32"))
TARGETS = ("generic", "sky130")
TIMEOUT = 1200


PLAIN: Mapping[str, Callable[..., wiring.Component]] = {
    "encoder": PlainEncoder,
    "decoder": PlainDecoder,
}
"""The plain units, by the name in the registry of what they are compared with."""


@dataclass(frozen=True)
class PlainComparison:
    """Reports of a unit of the project and of the plain one, mapped alike."""

    ours: AreaReport
    plain: AreaReport


def differences(
    component: wiring.Component, unit: str, parameters: Mapping[str, Any], count: int = 20_000
) -> int:
    """Return how many items a component answers with other bits than the golden model.

    Args:
        component: has the stream ports of `unit`.
        unit: name in the registry.
        parameters: those of the unit that are not its defaults.
        count: random items beside the corner cases of the unit.
    """
    entry, stimulus = find(unit), find(unit)
    settings = entry.parameters(parameters)
    random = stimulus.random(settings, np.random.default_rng(0), count)
    corners = stimulus.corners(settings)
    items = {name: np.concatenate([corners[name], random[name]]) for name in random}
    outputs = ComponentModel(component_source(component), f"plain {unit}").run(items).outputs
    expected = entry.golden(items, settings)
    differ = [
        (np.asarray(outputs[name]) != want).reshape(len(want), -1).any(axis=1)
        for name, want in expected.items()
    ]
    return int(np.logical_or.reduce(differ).sum())


def compare(
    unit: str,
    parameters: Mapping[str, Any],
    *,
    target: str = "generic",
    liberty: Path | None = None,
    timeout: float = 600,
) -> PlainComparison:
    """Measure a unit and the plain one, both for area.

    Args:
        unit: `encoder` or `decoder`.
        parameters: `block` and `dtype`.
        target: as in `axs6.synth.area.area`; likewise `liberty` and `timeout`, for each of the two.

    Raises:
        SynthesisError: as `axs6.synth.area.area`, or the plain unit's bits are not the golden
            model's.
    """
    plain = PLAIN[unit](**parameters)
    if differ := differences(plain, unit, parameters):
        raise SynthesisError(f"the plain {unit} must equal the golden model; {differ} items differ")
    ours, theirs = (
        area(
            convert(each, name),
            name,
            target=target,
            liberty=liberty,
            breakdown=False,
            timeout=timeout,
        )
        for each, name in (
            (find(unit).build(**parameters), f"axs6_{unit}"),
            (plain, f"plain_{unit}"),
        )
    )
    return PlainComparison(ours, theirs)


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
