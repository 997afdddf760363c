"""Files beside a unit's Verilog: an instance, a package of its numbers, a core file."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from axs6.hw.verilog import ROLES, Generated, fields_of


def template(made: Generated) -> str:
    """An instance of a unit as Verilog, to copy or to include: wires for its streams beside it.

    The wires are named `MODULE_PORT`; clock and reset are `clk` and `rst`.
    """
    module, manifest = made.module, made.manifest
    own = [manifest["clock"], manifest["reset"]]
    ports = [port for stream in manifest["streams"] for port in stream_ports(stream)]
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


def fusesoc_core(made: Generated, *, constrained: bool = False) -> str:
    """A core file of FuseSoC (CAPI2) for a unit's files: `axs6:generated:MODULE:VERSION`.

    Its targets are `default`, the files for a design that depends on the core, and `lint`, in which
    Verilator reads them.

    Args:
        made: the unit. constrained: whether there is an SDC file too.

    Source: FuseSoC's reference of core files, CAPI2.
    """
    module = made.module
    package_file = f"{module}_pkg.sv: {{file_type: systemVerilogSource}}"
    files = {"rtl": [package_file, f"{module}.v: {{file_type: verilogSource-2005}}"]}
    if constrained:
        files["constraints"] = [f"{module}.sdc: {{file_type: SDC}}"]
    filesets = [
        line
        for name, each in files.items()
        for line in (f"  {name}:", "    files:", *(f"      - {file}" for file in each))
    ]
    return "\n".join(
        [
            "CAPI=2:",
            f'name: "axs6:generated:{module}:{version("axs6")}"',
            f'description: "AXS-6 {made.manifest["unit"]}"',
            *("", "filesets:", *filesets),
            *("", "targets:", "  default: &default", f"    filesets: [{', '.join(files)}]"),
            f"    toplevel: {module}",
            *("  lint:", "    <<: *default", "    default_tool: verilator"),
            *("    tools: {verilator: {mode: lint-only}}", ""),
        ]
    )


def stream_ports(stream: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names and widths of the ports of a stream, as the manifest describes it."""
    for role in ROLES:
        if role in stream:
            yield stream[role], stream["width"] if role == "payload" else 1
    ports = stream.get("ports", {})
    for field in fields_of(stream):
        if field.name in ports:
            yield ports[field.name], field.count * field.width
