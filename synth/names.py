"""Names from files and callers that appear in scripts of other programs.

Those programs have no common way to quote: a `;` ends a command of Yosys, `[exec ...]` in Tcl
runs a program, a newline ends a comment. So every such name is plain, or the run is refused:

- cells and pins of a library: in Yosys's commands and ABC's scripts (`-dont_use`, `read_lib -X`),
  in ABC's constraints (`set_driving_cell`), in Verilog for Yosys (`full_adder.v`), and in the
  Verilog and the SDC of `--netlist`, which OpenSTA and other tools read;
- the library's own name: in a comment of the SDC;
- the top module: in Yosys's commands, in Verilog, in the SDC and in OpenSTA's Tcl;
- the top module's ports: in the SDC, and in the Verilog around a unit that is placed.

`axs6.hw.verilog.generate` holds the names of modules to the same rule, which the Verilog, the
C++ and the files of simulations have. Each program runs in a folder of its own, where the files
have fixed names. `axs6.sim.process.check_folder` checks the path of that folder, which Yosys gives
ABC. Inner nets and instances get new, plain names (`axs6.synth.structural`). What C++ is compiled
from has names of this project alone.
"""

import re
from typing import Final

from axs6.synth.errors import SynthesisError

PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of modules and ports."""

IN_LIBRARY: Final = re.compile(r"[A-Za-z0-9_]+(\[[0-9]+\])?")
"""Names of cells and pins, of which the latter may be a bit such as `A[0]`."""


def check_name(name: str, what: str, pattern: re.Pattern[str] = PLAIN) -> None:
    """Check a name that gets into a script.

    Args:
        name: the name.
        what: what has it, for the message.
        pattern: what it must be.

    Raises:
        SynthesisError: it is something else.
    """
    if not pattern.fullmatch(name):
        raise SynthesisError(f"{what} must be a name of letters, digits and _, not {name!r}")
