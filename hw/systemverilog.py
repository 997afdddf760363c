"""SystemVerilog beside a unit's Verilog: a package of its numbers and types, and interfaces."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from axs6.hw.core.layouts import Field
from axs6.hw.integration import bit_range, role_width
from axs6.hw.verilog import ROLES, Generated, fields_of


def package(made: Generated) -> str:
    """A package `MODULE_pkg`: latency, widths and offsets in bits, and a type for each payload.

    An array has an offset, the width of an element, and a count: element i lies at
    offset + i * width. The type of the payload of a stream `i` is `i_payload_t`, a packed struct in
    which a field `a.codes` is `a.codes`, and element i of an array `codes[i]`.
    """
    numbers = {"LATENCY": made.manifest["latency"], "INTERVAL": made.manifest["interval"]}
    types = []
    for stream in made.manifest["streams"]:
        numbers[f"{stream['name']}_WIDTH"] = stream["width"]
        for field in fields_of(stream):
            name = f"{stream['name']}_{field.name.replace('.', '_')}"
            numbers |= {f"{name}_OFFSET": field.offset, f"{name}_WIDTH": field.width}
            if field.shape:
                numbers[f"{name}_COUNT"] = field.count
        members = _members(_without_gaps(stream))
        types += [f"  typedef {_struct(members, 2)} {stream['name']}_payload_t;"]
    lines = [f"  localparam int {name.upper()} = {value};" for name, value in numbers.items()]
    return "\n".join([f"package {made.module}_pkg;", *lines, *types, "endpackage", ""])


def interfaces(made: Generated) -> str:
    """An interface `MODULE_STREAM_if` for each stream, and the unit with them as its ports.

    Each interface has the stream's handshake, its payload as the package's type, and modports
    `source` and `sink`. The module `MODULE_with_interfaces` has the unit's clock and reset, and an
    interface for each stream under the stream's name.
    """
    module, manifest = made.module, made.manifest
    clocked = [manifest["clock"], manifest["reset"]]
    ports = [f"input logic {port}" for port in clocked]
    connected = [f".{port}({port})" for port in clocked]
    texts = []
    for stream in manifest["streams"]:
        name = stream["name"]
        texts.append(_interface(module, stream))
        modport = "sink" if stream["direction"] == "input" else "source"
        ports.append(f"{module}_{name}_if.{modport} {name}")
        connected += [f".{port}({name}.{signal})" for port, signal in _signals(stream)]
    wrapper = [
        f"module {module}_with_interfaces (",
        "  " + ",\n  ".join(ports),
        ");",
        f"  {module} unit (",
        "    " + ",\n    ".join(connected),
        "  );",
        "endmodule",
        "",
    ]
    return "\n".join([*texts, *wrapper])


def _interface(module: str, stream: Mapping[str, Any]) -> str:
    """The interface of a stream."""
    payload, given = _payload(stream), [role for role in ROLES if role in stream]
    names = {role: _signal(stream, role) for role in given}
    sent = [name for role, name in names.items() if role not in ("ready", "payload")] + [payload]
    modports = [("source", "output", "input"), ("sink", "input", "output")]
    return "\n".join(
        [
            f"interface {module}_{stream['name']}_if;",
            *(
                f"  logic {bit_range(role_width(stream, role))}{name};"
                for role, name in names.items()
                if role != "payload"
            ),
            f"  {module}_pkg::{stream['name']}_payload_t {payload};",
            *(
                f"  modport {name} ({out} {', '.join(sent)}, {back} {names['ready']});"
                for name, out, back in modports
            ),
            "endinterface",
            "",
        ]
    )


def _signals(stream: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each port of a stream, and the signal of its interface that it is connected to."""
    for role in ROLES:
        if role in stream:
            yield stream[role], _signal(stream, role)
    for name, port in stream.get("ports", {}).items():
        yield port, f"{_payload(stream)}.{name}"


def _signal(stream: Mapping[str, Any], role: str) -> str:
    return str(stream[role]).removeprefix(f"{stream['name']}_")


def _payload(stream: Mapping[str, Any]) -> str:
    return _signal(stream, "payload") if "payload" in stream else "payload"


def _without_gaps(stream: Mapping[str, Any]) -> list[Field]:
    """The fields of a stream from bit 0 on, with a field for the bits between them."""
    found: list[Field] = []
    end = 0
    for field in [*fields_of(stream), Field("", stream["width"], 0, False, ())]:
        if gap := field.offset - end:
            group = f"{field.name.rpartition('.')[0]}." if "." in field.name else ""
            found.append(Field(f"{group}unused{end}", end, gap, False, ()))
        end = field.offset + field.count * field.width
        found += [field] if field.width else []
    return found


def _members(fields: Sequence[Field]) -> list[tuple[str, Field | list[Any]]]:
    """Names of a struct's members, each with its field or with the members of its own struct."""
    found: list[tuple[str, Field | list[Any]]] = []
    for name, group in groupby(fields, lambda field: field.name.partition(".")[0]):
        same = list(group)
        if same[0].name == name:
            found += [(name, field) for field in same]
        else:
            inner = [
                Field(f.name.partition(".")[2], f.offset, f.width, f.signed, f.shape) for f in same
            ]
            found.append((name, _members(inner)))
    return found


def _struct(members: Sequence[tuple[str, Field | list[Any]]], indent: int) -> str:
    """A packed struct; SystemVerilog has the first member in the highest bits."""
    space = " " * indent
    lines = [f"{space}  {_type(member, indent)} {name};" for name, member in reversed(members)]
    return "\n".join(["struct packed {", *lines, f"{space}}}"])


def _type(member: Field | list[Any], indent: int) -> str:
    if isinstance(member, list):
        return _struct(member, indent + 2)
    sizes = [*member.shape, *([member.width] if member.width > 1 or member.signed else [])]
    ranges = "".join(f"[{size - 1}:0]" for size in sizes)
    return " ".join(filter(None, ["logic", "signed" * member.signed, ranges]))
