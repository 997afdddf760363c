"""Verilog of a unit, and the manifest that describes it."""

import hashlib
import logging
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from axs6.golden.formats import AXS6, name_of, operand_formats
from axs6.hw.axi_stream import AxiStream
from axs6.hw.core import rtlil
from axs6.hw.core.amaranth_internals import ToolNotFound, YosysError, find_yosys
from axs6.hw.core.clocking import USUAL, Clocking, clocking
from axs6.hw.core.layouts import Field, fields
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.hw.field_ports import FieldPorts, port_of
from axs6.hw.keep_ports import KeepPorts
from axs6.hw.names import KEYWORDS, plain_names, plain_triggers
from axs6.hw.registry import BUS_UNITS, find
from axs6.hw.units.unit import option_words

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"

_RULES = ("WIDTH", "CASEINCOMPLETE")
LINT = "".join(f"/* verilator lint_off {rule} */\n" for rule in _RULES)
"""Rules that Yosys's Verilog breaks on purpose: it relies on Verilog's extension of operands.

Verilator 5.006 and later know these names; those of parts of WIDTH are newer."""

UNNAMED = {"format": name_of(AXS6), "accumulator": DEFAULT_ACCUMULATOR}
"""The block format and the accumulator that names of modules and headers leave out."""

NAME_LENGTH = 100
"""Characters of a module's name, at most; those of lanes have some more."""

PORTS = PACKED, FIELDS, KEEP = "packed", "fields", "keep"
"""Ports of a stream: one for its payload, one for each field, or with an AXI4-Stream's `tkeep`."""

_REMOVED = " ".join(
    f"-remove {name}"
    for name in ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
)
_WRITE = f"""proc -nomux -norom
memory_collect
attrmap {_REMOVED}
attrmap -modattr {_REMOVED}
write_verilog
"""
"""The commands of Amaranth's own back end, without its attributes and with plain names."""

ROLES = ("valid", "ready", "payload", "last", "user", "keep")
"""Roles of the ports of a stream; only AXI4-Stream has the last three."""

_ON_BUS = ("tvalid", "tready", "tdata", "tlast", "tuser", "tkeep")


_log = logging.getLogger("axs6")


@dataclass(frozen=True)
class Generated:
    """The result of `generate`: a module's name, its Verilog text and its manifest."""

    module: str
    verilog: str
    manifest: dict[str, Any]

    @property
    def ports(self) -> list[str]:
        """Names of all ports."""
        of_streams = [
            described[role]
            for described in self.manifest["streams"]
            for role in ROLES
            if role in described
        ]
        of_streams += [
            port for each in self.manifest["streams"] for port in each.get("ports", {}).values()
        ]
        return [self.manifest["clock"], self.manifest["reset"], *of_streams]

    @property
    def inputs(self) -> list[Field]:
        """Fields of the input stream's payload."""
        return stream_fields(self.manifest, "i")

    @property
    def outputs(self) -> list[Field]:
        """Fields of the output stream's payload."""
        return stream_fields(self.manifest, "o")


def stream_fields(manifest: Mapping[str, Any], name: str) -> list[Field]:
    """Payload fields of the stream called `name` in a manifest."""
    described = next(each for each in manifest["streams"] if each["name"] == name)
    return fields_of(described)


def fields_of(stream: Mapping[str, Any]) -> list[Field]:
    """Payload fields of a stream as a manifest describes it."""
    return [Field(**{**field, "shape": tuple(field["shape"])}) for field in stream["fields"]]


def generate(
    unit: str,
    *,
    name: str | None = None,
    ports: str = PACKED,
    reset: str = USUAL.kind,
    **parameters: Any,
) -> Generated:
    """Verilog-2005 and a manifest for a unit; the same parameters always give the same bytes.

    Args:
        unit: its name in the registry.
        name: of the module, which those inside begin with too; None for `axs6_UNIT`, with the
            block format and the accumulator behind it where they are not the default.
        ports: "packed"; "fields" for a port for each field in place of a stream's payload; or
            "keep" for a `tkeep` at each AXI4-Stream.
        reset: one of `axs6.hw.core.clocking.RESETS`.
        parameters: those of the unit; the others keep their defaults.

    Returns:
        The module, with ports of its clock and reset, which `axs6.hw.core.clocking.clocking` names,
        and of its streams, whose payloads the manifest describes field by field.

    Raises:
        ValueError: an unknown unit or parameter, a value that the unit cannot take, a name that is
            no Verilog identifier or a reserved word, or ports that its streams cannot have.
    """
    entry = find(unit)
    settings = entry.parameters(parameters)
    module = module_name(unit, settings) if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", module):
        raise ValueError(f"name must be letters, digits and _, no digit first, not {module!r}")
    if module in KEYWORDS:
        raise ValueError(f"name must not be a reserved word of SystemVerilog, not {module!r}")
    if ports not in PORTS:
        raise ValueError(f"ports must be one of {', '.join(PORTS)}, not {ports!r}")
    on_bus = unit in BUS_UNITS
    if ports == (FIELDS if on_bus else KEEP):
        where = "on AXI4-Stream" if on_bus else "not on AXI4-Stream"
        raise ValueError(f"{unit} is {where}: its ports cannot be {ports}")
    clocked = clocking(reset, on_bus=on_bus)
    component: Any = entry.build(**parameters)
    if ports == KEEP:
        component = KeepPorts(component)
    streams = describe_streams(component)
    if ports == FIELDS:
        component = FieldPorts(component)
        for stream in streams:
            del stream["payload"]
            stream["ports"] = {
                field.name: rtlil.port_name((stream["name"], port_of(field)))
                for field in fields_of(stream)
            }
    _log.info("writing the Verilog of %s", unit)
    text = convert(component, module, clocked)
    chosen = {"name": name, "ports": ports, "reset": clocked.kind}
    usual = {"name": None, "ports": PACKED, "reset": USUAL.kind}
    words = [*entry.options(parameters), *option_words(chosen, usual)]
    manifest = {
        "module": module,
        "unit": unit,
        "summary": entry.summary,
        "parameters": settings,
        "latency": component.latency,
        "interval": component.interval,
        "clock": clocked.clock,
        "reset": clocked.reset,
        "reset_kind": clocked.kind,
        "streams": streams,
    }
    command = shlex.join(["axs6", "generate", unit, *words])
    header = f"// AXS-6 {version('axs6')}: {command}\n{LICENCE}{LINT}"
    return Generated(module, header + text, manifest)


def module_name(unit: str, settings: Mapping[str, Any]) -> str:
    """The name of a unit's module where none is given: letters, digits and _.

    A long one ends in a digest, since Verilator replaces names of more than 127 characters.
    """
    chosen = {**UNNAMED, **settings}
    formats = "_".join(map(name_of, operand_formats(chosen["format"])))
    named = (formats, chosen["accumulator"])
    others = [each for each in named if each not in UNNAMED.values()]
    name = "_".join([f"axs6_{unit}", *(re.sub(r"\W", "_", each) for each in others)])
    if len(name) <= NAME_LENGTH:
        return name
    return f"{name[: NAME_LENGTH - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def convert(
    component: wiring.Component,
    module: str,
    clocked: Clocking = USUAL,
) -> str:
    """Verilog of a component as `module`, with ports of clock and reset beside its own.

    Raises:
        RuntimeError: the Yosys that Amaranth uses is missing or fails.
    """
    text = plain_names(rtlil.without_fields(rtlil.convert(component, module, clocked)))
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\n{_WRITE}"
    try:
        # It warns that not all processes can be Verilog; Amaranth writes only those that can.
        written = str(find_yosys().run(["-q", "-"], script, ignore_warnings=True))
    except (YosysError, ToolNotFound) as error:
        raise RuntimeError(f"Amaranth could not write the Verilog of {module}: {error}") from error
    return plain_triggers(written)


def describe_streams(component: wiring.Component) -> list[dict[str, Any]]:
    """Ports and payload fields of a component's streams, which may be on AXI4-Stream."""
    return [
        _describe_stream(component, name, member)
        for name, member in component.signature.members.items()
    ]


def _describe_stream(
    component: wiring.Component, name: str, member: wiring.Member
) -> dict[str, Any]:
    on_bus = isinstance(member.signature, AxiStream)
    names = _ON_BUS if on_bus else ROLES
    signals = {
        role: name
        for role, name in zip(ROLES, names, strict=True)
        if name in member.signature.members
    }
    layout = getattr(getattr(component, name), signals["payload"]).shape()
    return {
        "name": name,
        "direction": "input" if member.flow == In else "output",
        **{role: rtlil.port_name((name, signals[role])) for role in signals},
        "width": layout.size,
        "fields": [asdict(field) for field in fields(layout)],
    }
