"""Files beside a unit's Verilog: an instance to copy, and a package of its numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from axs6.hw.verilog import ROLES, Generated, fields_of


def template(made: Generated) -> str:
    """An instance of a unit as Verilog, to copy or to include: wires for its streams beside it.

    The wires are named `MODULE_PORT`; clock and reset are `clk` and `rst`.
    """
    module, manifest = made.module, made.manifest
    own = [manifest["clock"], manifest["reset"]]
    ports = list(_stream_ports(manifest))
    wires = [
        f"wire {f'[{width - 1}:0] ' if width > 1 else ''}{module}_{port};" for port, width in ports
    ]
    connections = [*((port, port) for port in own), *((p, f"{module}_{p}") for p, _ in ports)]
    connected = ",\n".join(f"  .{port}({wire})" for port, wire in connections)
    return "\n".join([*wires, f"{module} {module}_instance (", connected, ");", ""])


def package(made: Generated) -> str:
    """A SystemVerilog package `MODULE_pkg` of a unit's latency, widths and offsets, in bits.

    An array has an offset, the width of an element, and a count: element i lies at
    offset + i * width.
    """
    numbers = {"LATENCY": made.manifest["latency"], "INTERVAL": made.manifest["interval"]}
    for stream in made.manifest["streams"]:
        numbers[f"{stream['name']}_WIDTH"] = stream["width"]
        for field in fields_of(stream):
            name = f"{stream['name']}_{field.name.replace('.', '_')}"
            numbers |= {f"{name}_OFFSET": field.offset, f"{name}_WIDTH": field.width}
            if field.shape:
                numbers[f"{name}_COUNT"] = field.count
    lines = [f"  localparam int {name.upper()} = {value};" for name, value in numbers.items()]
    return "\n".join([f"package {made.module}_pkg;", *lines, "endpackage", ""])


def _stream_ports(manifest: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names and widths of the ports of all streams."""
    for stream in manifest["streams"]:
        for role in ROLES:
            if role in stream:
                yield stream[role], stream["width"] if role == "payload" else 1
        ports = stream.get("ports", {})
        for field in fields_of(stream):
            if field.name in ports:
                yield ports[field.name], field.count * field.width
