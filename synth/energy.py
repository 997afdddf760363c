"""Energy of a unit: toggles of the nets of its mapped netlist on real data, times capacitances."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import AXS6, Mode
from axs6.hw.core.layouts import port_fields
from axs6.hw.registry import find, find_with_streams
from axs6.hw.verilog import convert, generate
from axs6.sim.batch.activity import Activity, ActivityModel
from axs6.sim.compiler import check_compiler
from axs6.sim.words import completing
from axs6.synth.capacitance import Capacitances, capacitances
from axs6.synth.energy_nets import KINDS, Nets, find_nets
from axs6.synth.energy_report import Consumption, EnergyReport
from axs6.synth.energy_stimulus import (
    RANDOM,
    SEQUENCES,
    Formats,
    Items,
    Product,
    Stimulus,
    products,
    reference_items,
    unit_items,
)
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis
from axs6.synth.mapped import mapped_netlist
from axs6.synth.reference import Int8Dot, int8_dot

Golden = Callable[[Items], dict[str, NDArray[Any]]]

_REFERENCE = "axs6_int8_dot"
_PLAIN = replace(AXS6, modes=(Mode.DENSE,))
"""The format beside the reference's integers: without modes, blocks have any number of values."""


def energy(
    unit: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    stimulus: Stimulus = RANDOM,
    timeout: float = 600,
    **options: Any,
) -> EnergyReport:
    """Measure the energy of a unit after synthesis, and of an INT8 dot product on the same data.

    The gates that `axs6.synth.mapped.mapped_netlist` gives are simulated cycle by cycle, an item in
    each. Every toggle of a net costs C V^2 / 2, where C is the sum of the capacitances of its pins.
    All output bits are compared with the golden model.

    Args:
        unit: its name in the registry.
        parameters: of the unit; the others keep their defaults.
        stimulus: the data, such as `axs6.studies.stimuli.DIGITS`, layers of a trained perceptron.
        timeout: limit in seconds for each of the two syntheses.
        options: of `axs6.synth.flow.Synthesis`, for the unit and the reference. Energies on
            `generic` are in changes of an input of a two-input NAND, those on `sky130` and with a
            `liberty` in fJ.

    Raises:
        ValueError: an unknown unit or parameter.
        SynthesisError: as `axs6.synth.area.area`; a target without gates; a library without the
            capacitance of a pin, or without voltage or unit of capacitance.
        ToolError: g++ is missing or fails.
    """
    chosen = Synthesis(**options)
    check_energy(unit, chosen)
    entry = find(unit)
    settings = entry.parameters(parameters or {})
    made = generate(unit, **settings)
    library = _library(chosen.target, chosen.liberty)
    measured = measure(
        entry.build(**settings),
        mapped_netlist(made.verilog, made.module, timeout=timeout, **vars(chosen)),
        library,
        stimulus_items(unit, settings, stimulus),
        lambda items: entry.golden(items, settings),
        _operations(settings),
    )
    reference = _reference(settings["block"], chosen, timeout, stimulus)
    return EnergyReport(
        library.unit,
        entry.operation,
        stimulus.name,
        SEQUENCES,
        measured,
        reference,
        settings["block"],
    )


def stimulus_items(unit: str, parameters: Mapping[str, Any], stimulus: Stimulus) -> Items:
    """Return the sequences of items that the energy of a unit is measured on.

    Args:
        unit: its name in the registry.
        parameters: all of the unit.
        stimulus: the data.
    """
    left, *more = find(unit).formats(parameters)
    work = _work(stimulus, parameters["block"], (left, more[0] if more else left))
    return unit_items(unit, parameters, work)


def check_energy(unit: str, options: Synthesis) -> None:
    """Check the arguments of `energy` before any synthesis.

    Raises:
        ValueError: an unknown unit, or one without streams.
        SynthesisError: energy is not measured of this target, or the library lacks what all
            energies need.
        ToolError: g++ is missing.
    """
    find_with_streams(unit)
    _library(options.target, options.liberty)
    check_compiler("the batch simulator")


def _operations(settings: Mapping[str, Any]) -> int:
    """Return the operations of an item: MACs, or values."""
    lanes = settings.get("rows", 1) * settings.get("columns", 1)
    return int(settings["block"] * lanes)


@lru_cache(maxsize=4)
def _library(target: str, liberty: Path | None) -> Capacitances:
    return capacitances(target, liberty)


@lru_cache(maxsize=4)
def _work(stimulus: Stimulus, block: int, formats: Formats) -> tuple[Product, ...]:
    return tuple(products(stimulus, block, formats))


@lru_cache(maxsize=16)
def _reference(lanes: int, options: Synthesis, timeout: float, stimulus: Stimulus) -> Consumption:
    """Measure the reference unit; in one process only once for each library and stimulus."""
    component = Int8Dot(lanes)
    return measure(
        component,
        mapped_netlist(
            convert(component, _REFERENCE), _REFERENCE, timeout=timeout, **vars(options)
        ),
        _library(options.target, options.liberty),
        reference_items(_work(stimulus, lanes, (_PLAIN, _PLAIN))),
        int8_dot,
        lanes,
    )


def measure(
    component: Any,
    netlist: str,
    library: Capacitances,
    items: Items,
    golden: Golden,
    operations: int,
) -> Consumption:
    """Measure the energy of a component that takes an item in each cycle.

    Args:
        component: with streams `i` and `o`, and `latency`.
        netlist: of it, as `axs6.synth.mapped.mapped_netlist` gives it.
        library: capacitances of the cells that it was mapped to.
        items: sequences of items, an array of shape (sequences, items, ...) for each field.
        golden: gives the outputs of a sequence.
        operations: MACs or values of an item.

    Raises:
        SynthesisError: a capacitance is not known, or the netlist's outputs differ from `golden`.
    """
    nets = find_nets(netlist, library)
    inputs, outputs = port_fields(component)
    model = ActivityModel(netlist, nets.bits, inputs, outputs, type(component).__name__)
    activity = model.run(items, settle=component.latency)
    _check_outputs(activity, items, golden, component.latency)
    return consumption(activity, nets, library.change, operations)


def _check_outputs(activity: Activity, items: Items, golden: Golden, latency: int) -> None:
    """Raise SynthesisError unless each sequence gave the outputs of the golden model."""
    length = next(iter(items.values())).shape[1]
    start = 0
    for index, given in enumerate(activity.given):
        sequence = {name: array[index] for name, array in items.items()}
        expected = golden(sequence)
        count = int((completing(sequence) + latency < length).sum())
        shown = {name: array[start : start + given] for name, array in activity.outputs.items()}
        if count != given or any(
            not np.array_equal(array, expected[name][:count]) for name, array in shown.items()
        ):
            raise SynthesisError(f"the mapped netlist differs from its model in sequence {index}")
        start += int(given)


def consumption(activity: Activity, nets: Nets, change: float, operations: int) -> Consumption:
    """Return the energy of an activity.

    Args:
        activity: of `nets`.
        nets: with their capacitances.
        change: energy of one change of a net of capacitance 1.
        operations: MACs or values of an item.
    """
    sequences = len(activity.changes)
    costs = change * nets.capacitances
    clock = 2 * change * nets.clock
    each = activity.changes @ costs / activity.pairs + clock
    per_net = activity.changes.sum(axis=0) / (sequences * activity.pairs)
    parts = {
        kind: float((per_net * costs)[nets.kinds == index].sum())
        for index, kind in enumerate(KINDS)
    }
    return Consumption(
        per_item=float(each.mean()),
        standard_error=float(each.std(ddof=1) / sequences**0.5),
        parts={**parts, "clock": clock},
        operations=operations,
        activity=float(per_net.mean()),
        nets=len(nets.bits),
        cycles=sequences * activity.pairs,
    )
