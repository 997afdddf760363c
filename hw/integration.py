"""Files beside a unit's Verilog: an instance, and a core file of FuseSoC."""

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
    wires = [f"wire {bit_range(width)}{module}_{port};" for port, width in ports]
    connections = [*((port, port) for port in own), *((p, f"{module}_{p}") for p, _ in ports)]
    connected = ",\n".join(f"  .{port}({wire})" for port, wire in connections)
    return "\n".join([*wires, f"{module} {module}_instance (", connected, ");", ""])


def fusesoc_core(made: Generated, *, constrained: bool = False) -> str:
    """A core file of FuseSoC (CAPI2) for a unit's files: `axs6:generated:MODULE:VERSION`.

    Its targets are `default`, the files for a design that depends on the core, and `lint`, in which
    Verilator reads them.

    Args:
        made: the unit. constrained: whether there is an SDC file too.

    Source: FuseSoC's reference of core files, CAPI2.
    """
    module = made.module
    files = {
        "rtl": [
            f"{module}_pkg.sv: {{file_type: systemVerilogSource}}",
            f"{module}.v: {{file_type: verilogSource-2005}}",
            f"{module}_if.sv: {{file_type: systemVerilogSource}}",
        ]
    }
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
            yield stream[role], role_width(stream, role)
    ports = stream.get("ports", {})
    for field in fields_of(stream):
        if field.name in ports:
            yield ports[field.name], field.count * field.width


def input_ports(stream: Mapping[str, Any]) -> set[str]:
    """Names of the ports of a stream that are inputs of the unit."""
    ready, taken = stream["ready"], stream["direction"] == "input"
    return {port for port, _ in stream_ports(stream) if (port != ready) == taken}


def role_width(stream: Mapping[str, Any], role: str) -> int:
    """Width of the port that has a role in a stream."""
    return int({"payload": stream["width"], "keep": stream["width"] // 8}.get(role, 1))


def bit_range(width: int) -> str:
    """The range of a signal's bits in its declaration, and a blank; nothing for a single bit."""
    return f"[{width - 1}:0] " if width > 1 else ""
