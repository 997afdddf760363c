"""The encoder and the decoder beside the plain ones of `axs6.synth.plain`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.lib import wiring

from axs6.hw.registry import find
from axs6.hw.verilog import convert
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError
from axs6.synth.plain import PlainDecoder, PlainEncoder
from axs6.synth.report import AreaReport

PLAIN: Mapping[str, Callable[..., wiring.Component]] = {
    "encoder": PlainEncoder,
    "decoder": PlainDecoder,
}
"""The plain units, by the name in the registry of what they are compared with."""


@dataclass(frozen=True)
class Comparison:
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
) -> Comparison:
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
    return Comparison(ours, theirs)
