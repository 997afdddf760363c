"""Assertions of a unit's handshakes in SystemVerilog, bound to every instance of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from axs6.hw.integration import bit_range, stream_ports
from axs6.hw.verilog import Generated

HANDSHAKE = ("valid", "ready")


def assertions(made: Generated) -> str:
    """A module `MODULE_sva` that checks both streams of a unit, and its `bind` statement.

    Of each stream: once `valid` is 1, it and the payload stay until the item has moved; after a
    reset, no handshake and no payload of an item is X. Of outputs of a unit with registers: `valid`
    is 0 in the cycle after one with reset. Nothing is checked before the first reset.

    Names of assertions begin with the stream. Those of an input are promises of what drives it,
    which a formal tool may assume.
    """
    module, manifest = made.module, made.manifest
    clock, port = manifest["clock"], manifest["reset"]
    reset = f"!{port}" if manifest["reset_kind"].endswith("low") else port
    ports = [(clock, 1), (port, 1)]
    ports += [port for stream in manifest["streams"] for port in stream_ports(stream)]
    declared = ",\n".join(f"  input {bit_range(width)}{port}" for port, width in ports)
    connected = ", ".join(f".{port}({port})" for port, _ in ports)
    lines = [
        f"// Assertions of the handshakes of {module}: read this file beside its Verilog.",
        f"module {module}_sva (",
        declared,
        ");",
        "  bit reset_seen = 0;",
        f"  always @(posedge {clock}) if ({reset}) reset_seen <= 1;",
        f"  default clocking cycle @(posedge {clock}); endclocking",
        f"  default disable iff ({reset} || !reset_seen);",
    ]
    for stream in manifest["streams"]:
        for name, check in _checks(stream):
            lines += _assertion(f"{stream['name']}_{name}", check)
        if stream["direction"] == "output" and manifest["latency"]:
            check = f"disable iff (0) {reset} |=> !{stream['valid']}"
            lines += _assertion(f"{stream['name']}_valid_after_reset", check)
    lines += ["endmodule", "", f"bind {module} {module}_sva {module}_sva_bound ({connected});", ""]
    return "\n".join(lines)


def _checks(stream: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and properties of a stream's assertions."""
    valid, ready = (stream[role] for role in HANDSHAKE)
    payload = [port for port, _ in stream_ports(stream) if port not in (valid, ready)]
    waits = f"{valid} && !{ready} |=>"
    yield "valid_stays", f"{waits} {valid}"
    yield "payload_stays", f"{waits} $stable({{{', '.join(payload)}}})"
    yield "handshake_known", f"!$isunknown({{{valid}, {ready}}})"
    yield "payload_known", f"{valid} |-> !$isunknown({{{', '.join(payload)}}})"


def _assertion(name: str, check: str) -> list[str]:
    return [f"  {name}: assert property ({check})", f'    else $error("{name}");']
