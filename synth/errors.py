"""The one exception of the synthesis reports, and how a tool's log becomes its message."""

import re

TOO_FEW = "must have gates of three functions or more"
"""ABC's requirement of a library."""

_TOO_FEW_GATES = "Library with only"
_NO_FLIP_FLOP = re.compile(r"\(type (\$_\w+_)\) cannot be legalized")
_MODULE = re.compile(r"Generating RTLIL representation for module `\\(.+)'\.")
_NO_TOP = re.compile(r"ERROR: Module `(.+)' not found!")


class SynthesisError(RuntimeError):
    """A design could not be measured; the message is one line that names the file or target."""


def from_log(log: str, source: str) -> SynthesisError:
    """Turn the log of a failed run into an error.

    Args:
        log: what the child printed.
        source: target or library that it was run for.
    """
    if _TOO_FEW_GATES in log:
        return SynthesisError(f"{source} {TOO_FEW}; ABC found too few that it can use")
    if missing := _NO_FLIP_FLOP.search(log):
        return SynthesisError(
            f"{source} has no flip-flop or latch that can do {missing[1]}, which the design needs"
        )
    if top := _NO_TOP.search(log):
        modules = ", ".join(_MODULE.findall(log)) or "no module"
        return SynthesisError(f"the Verilog must have the top module {top[1]!r}; it has {modules}")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "ERROR: " in line), lines[-1])
    return SynthesisError(f"{source}: Yosys failed: {said}")
