"""Docstrings of components list every port with direction, shape and meaning, and the timing."""

import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In

import axs6.hw
from axs6.hw.core.pipeline import Step
from axs6.hw.field_ports import FieldPorts
from axs6.hw.keep_ports import KeepPorts
from axs6.hw.lfsr import Lfsr
from axs6.hw.registry import ALL_UNITS
from axs6.hw.units.unit import Unit
from axs6.hw.verilog import describe_streams

FORMATS = (
    *("axs6", "mx6", "mxfp8_e5m2", "nvfp4", "uint8", "vsq4"),
    *("int4_e4m3_t0_float32", "int5_e8m0_t16s4o1s2o1"),
    *("mxfp4_mse", "nvfp4_four-over-six", "vsq4_mse"),
)
"""Scales of every kind, within blocks and outside; some have no hardware in a unit."""


FORMS = ("blocks", "mode", "rounding")
"""Parameters that decide which fields there are."""


def listed(text: str | None) -> dict[str, str]:
    """Ports in the section `Ports` of a docstring, and their directions."""
    section = re.search(r"^Ports:\n((?: .*\n|\n(?= ))+)", inspect.cleandoc(text or "") + "\n", re.M)
    entries = re.split(r"\n(?=    \S)", section[1].rstrip()) if section else []
    found = {}
    for entry in entries:
        line = re.fullmatch(r"(\w[\w., ]*) \((in|out), ([^)]+)\): (\S.*)", " ".join(entry.split()))
        assert line, f"not `NAME (in or out, SHAPE): MEANING`: {entry}"
        found |= dict.fromkeys(line[1].split(", "), line[2])
    return found


def ports(component: wiring.Component) -> Iterator[tuple[str, str]]:
    """Ports of a component and their directions."""
    for name, member in component.signature.members.items():
        yield name, "in" if member.flow == In else "out"


def fields(component: wiring.Component) -> Iterator[tuple[str, str]]:
    """Streams of a unit and the fields of their payloads, without numbers at the end of names."""
    yield from ports(component)
    for stream in describe_streams(component):
        for field in stream["fields"]:
            name = f"{stream['name']}.{field['name']}".rstrip("0123456789")
            yield name, stream["direction"].removesuffix("put")


@cache
def variants(name: str) -> list[Any]:
    """A unit in its forms and formats, as far as it has hardware for them."""
    return list(_variants(ALL_UNITS[name]))


def _variants(unit: Unit) -> Iterator[Any]:
    small = {"rows": 1, "columns": 1, "align": 64}
    for name in FORMATS if "format" in unit.defaults else ("axs6",):
        given: dict[str, Any] = {"format": name, **small}
        given = {key: value for key, value in given.items() if key in unit.defaults}
        choices = unit.choices(given)
        for form in ({}, *({key: choices[key][-1]} for key in FORMS if key in choices)):
            with suppress(ValueError):
                yield unit.build(**given, **form)


def missing(text: str | None, wanted: Iterable[tuple[str, str]]) -> list[str]:
    """Ports that a docstring does not list, or not with their direction."""
    known = listed(text)
    return sorted({f"{name} ({way})" for name, way in wanted if known.get(name) != way})


def without_timing(text: str | None) -> list[str]:
    """What a docstring does not say of `latency` and `interval`."""
    return [word for word in ("latency", "interval") if word not in (text or "").lower()]


@pytest.mark.parametrize("name", ALL_UNITS)
def test_units_list_the_fields_of_their_streams(name: str) -> None:
    unit = ALL_UNITS[name]
    text = unit.component.__doc__
    built = variants(name)
    assert built
    found = {each for component in built for each in fields(component)}
    assert not missing(text, found)
    assert sorted(listed(text).keys() - {field for field, _ in found}) == []
    assert not without_timing(text)
    assert "Source: " in " ".join((text or "").split())


def components() -> dict[str, type[wiring.Component]]:
    """Public components with streams: neither steps nor their lanes, which are combinational."""
    found: dict[str, type[wiring.Component]] = {}
    for module in walk_packages(axs6.hw.__path__, "axs6.hw."):
        for name, value in vars(import_module(module.name)).items():
            public = inspect.isclass(value) and issubclass(value, wiring.Component)
            if public and value.__module__.startswith("axs6.hw.") and name[0] != "_":
                found[name] = value
    return {
        name: each
        for name, each in found.items()
        if not issubclass(each, Step) and not name.endswith("Lane")
    }


def inside(component: Any) -> Iterator[wiring.Component]:
    """A component and those that it keeps."""
    yield component
    for value in vars(component).values():
        if isinstance(value, wiring.Component) and not isinstance(value, Step):
            yield from inside(value)


def test_parts_of_units_list_their_ports() -> None:
    built = [unit.build() for unit in ALL_UNITS.values()]
    built += [ALL_UNITS["dot"].build(interleave=2), FieldPorts(ALL_UNITS["lfsr"].build())]
    built += [KeepPorts(ALL_UNITS[name].build()) for name in ("axis_dot", "axis_encoder")]
    known = components()
    seen = set()
    for each in (part for unit in built for part in inside(unit)):
        for cls in type(each).__mro__:
            if known.get(cls.__name__) is not cls:
                continue
            seen.add(cls.__name__)
            text = cls.__doc__
            assert not without_timing(text), cls
            if cls.__name__ != "Wrapper":  # its ports are those of the classes that derive from it
                assert not missing(text, ports(each)), cls
    assert seen == known.keys()


def test_a_port_that_is_not_listed_is_found() -> None:
    text = Lfsr.__doc__ or ""
    assert not missing(text, fields(Lfsr(8)))
    without = re.sub(r"\n +o\.random .*", "", text)
    assert without != text
    assert missing(without, fields(Lfsr(8))) == ["o.random (out)"]
    turned = text.replace("i.restart (in,", "i.restart (out,")
    assert missing(turned, fields(Lfsr(8))) == ["i.restart (in)"]
    assert missing("No section.", ports(Lfsr(8))) == ["i (in)", "o (out)"]
    assert without_timing(text.replace("Latency", "Delay")) == ["latency"]
    with pytest.raises(AssertionError, match="MEANING"):
        listed("A unit.\n\nPorts:\n    i (in): no shape.\n")
