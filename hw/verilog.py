"""Verilog of a unit, and the manifest that describes it."""

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from axs6.golden.formats import AXS6, name_of, operand_formats
from axs6.hw.axi_stream import AxiStream
from axs6.hw.core import rtlil
from axs6.hw.core.amaranth_internals import ToolNotFound, YosysError, find_yosys
from axs6.hw.core.layouts import Field, fields
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR, STRUCTURE
from axs6.hw.field_ports import FieldPorts, port_of
from axs6.hw.registry import BUS_UNITS, find

_WORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic
before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle
checker class clocking cmos config const constraint context continue cover covergroup
coverpoint cross deassign default defparam design disable dist do edge else end endcase
endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface
endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable
endtask enum event eventually expect export extends extern final first_match for force foreach
forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins
illegal_bins implements implies import incdir include initial inout input inside instance int
integer interconnect interface intersect join join_any join_none large let liblist library
local localparam logic longint macromodule matches medium modport module nand negedge nettype
new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter
pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real
realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
showcancelled signed small soft solve specify specparam static string strong strong0 strong1
struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout
time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef
union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""

KEYWORDS = frozenset(_WORDS.split())
"""Reserved words of Verilog and SystemVerilog, which no module may be named.

Source: IEEE 1800-2017, annex B, which has all of IEEE 1364-2005 too."""


_RULES = ("WIDTH", "CASEINCOMPLETE")
LINT = "".join(f"/* verilator lint_off {rule} */\n" for rule in _RULES)
"""Rules that Yosys's Verilog breaks on purpose: it relies on Verilog's extension of operands.

Verilator 5.006 and later know these names; those of parts of WIDTH are newer."""

UNNAMED = {"format": name_of(AXS6), "accumulator": DEFAULT_ACCUMULATOR}
"""The block format and the accumulator that names of modules and headers leave out."""

PORTS = PACKED, FIELDS = "packed", "fields"
"""Ports of a stream's payload: one for all of it, or one for each field."""

_REMOVED = " ".join(
    f"-remove {name}"
    for name in ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
)
_WRITE = f"""proc -nomux -norom
memory_collect
attrmap {_REMOVED}
attrmap -modattr {_REMOVED}
write_verilog -norename
"""
"""The commands of Amaranth's own back end, without its attributes."""

ROLES = ("valid", "ready", "payload", "last", "user")
"""Roles of the ports of a stream; only AXI4-Stream has the last two."""

_ON_BUS = ("tvalid", "tready", "tdata", "tlast", "tuser")


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
    unit: str, *, name: str | None = None, ports: str = PACKED, **parameters: Any
) -> Generated:
    """Verilog-2005 and a manifest for a unit; the same parameters always give the same bytes.

    Args:
        unit: its name in the registry.
        name: of the module, which those inside begin with too; None for `axs6_UNIT`, with the
            block format and the accumulator behind it where they are not the default.
        ports: "packed", or "fields" for a port for each field in place of a stream's payload.
        parameters: those of the unit; the others keep their defaults.

    Returns:
        The module, with ports `clk`, `rst` (synchronous, active high) and streams, whose payloads
        the manifest describes field by field.

    Raises:
        ValueError: an unknown unit or parameter, a value that the unit cannot take, a name that is
            no Verilog identifier or a reserved word, or ports for the fields of a bus.
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
    component: Any = entry.build(**parameters)
    streams = describe_streams(component)
    if ports == FIELDS:
        if unit in BUS_UNITS:
            raise ValueError(f"{unit} is on AXI4-Stream: its ports cannot be {FIELDS}")
        component = FieldPorts(component)
        for stream in streams:
            del stream["payload"]
            stream["ports"] = {
                field.name: rtlil.port_name(component, (stream["name"], port_of(field)))
                for field in fields_of(stream)
            }
    _log.info("writing the Verilog of %s", unit)
    text = convert(component, module)
    plain = {"view": STRUCTURE, **UNNAMED}
    described = " ".join(f"{k}={v}" for k, v in settings.items() if plain.get(k) != v)
    manifest = {
        "module": module,
        "unit": unit,
        "summary": entry.summary,
        "parameters": settings,
        "latency": component.latency,
        "interval": component.interval,
        "clock": "clk",
        "reset": "rst",
        "streams": streams,
    }
    return Generated(module, f"// axs6 {unit} {described}\n{LINT}{text}", manifest)


def module_name(unit: str, settings: Mapping[str, Any]) -> str:
    """The name of a unit's module where none is given: letters, digits and _."""
    chosen = {**UNNAMED, **settings}
    formats = "_".join(map(name_of, operand_formats(chosen["format"])))
    named = (formats, chosen["accumulator"])
    others = [each for each in named if each not in UNNAMED.values()]
    return "_".join([f"axs6_{unit}", *(re.sub(r"\W", "_", each) for each in others)])


def convert(component: wiring.Component, module: str) -> str:
    """Verilog of a component as `module`, with ports `clk` and `rst` beside its own.

    Raises:
        RuntimeError: the Yosys that Amaranth uses is missing or fails.
    """
    text = rtlil.without_fields(rtlil.convert(component, module))
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\n{_WRITE}"
    try:
        # It warns that not all processes can be Verilog; Amaranth writes only those that can.
        return str(find_yosys().run(["-q", "-"], script, ignore_warnings=True))
    except (YosysError, ToolNotFound) as error:
        raise RuntimeError(f"Amaranth could not write the Verilog of {module}: {error}") from error


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
    signals = dict(zip(ROLES, _ON_BUS if on_bus else ROLES[:3], strict=False))
    layout = getattr(getattr(component, name), signals["payload"]).shape()
    return {
        "name": name,
        "direction": "input" if member.flow == In else "output",
        **{role: rtlil.port_name(component, (name, signals[role])) for role in signals},
        "width": layout.size,
        "fields": [asdict(field) for field in fields(layout)],
    }
