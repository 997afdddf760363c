"""The component declaration of a unit for designs in VHDL."""

import re

from axs6.hw.integration import input_ports, stream_ports
from axs6.hw.verilog import Generated

_PLAIN = re.compile(r"[A-Za-z]_?[A-Za-z0-9]+(_[A-Za-z0-9]+)*")
_WORDS = """
abs access after alias all and architecture array assert assume assume_guarantee attribute begin
block body buffer bus case component configuration constant context cover default disconnect downto
else elsif end entity exit fairness file for force function generate generic group guarded if impure
in inertial inout is label library linkage literal loop map mod nand new next nor not null of on
open or others out package parameter port postponed procedure process property protected pure range
record register reject release rem report restrict restrict_guarantee return rol ror select sequence
severity shared signal sla sll sra srl strong subtype then to transport type unaffected units until
use variable vmode vprop vunit wait when while with xnor xor
"""

_RESERVED = frozenset(_WORDS.split())
"""Reserved words of VHDL. Source: IEEE 1076-2008, 15.10."""


def component(made: Generated) -> str:
    """A package `MODULE_component` that declares the unit's module as a component.

    Bit k of a port is bit k in Verilog. A name that VHDL does not take is an extended identifier.
    """
    manifest, module = made.manifest, made.module
    ports = [(port, "in", 1) for port in (manifest["clock"], manifest["reset"])]
    for stream in manifest["streams"]:
        inputs = input_ports(stream)
        ports += [
            (port, "in" if port in inputs else "out", width) for port, width in stream_ports(stream)
        ]
    declared = ";\n".join(
        f"      {identifier(port)} : {direction} {_type(width)}" for port, direction, width in ports
    )
    return "\n".join(
        [
            "library ieee;",
            "use ieee.std_logic_1164.all;",
            "",
            f"package {identifier(f'{module}_component')} is",
            f"  component {identifier(module)} is",
            "    port (",
            declared,
            "    );",
            "  end component;",
            "end package;",
            "",
        ]
    )


def identifier(name: str) -> str:
    """A name of Verilog in VHDL, between backslashes if it is no basic identifier."""
    basic = _PLAIN.fullmatch(name) and name.lower() not in _RESERVED
    return name if basic else f"\\{name}\\"


def _type(width: int) -> str:
    return "std_logic" if width == 1 else f"std_logic_vector({width - 1} downto 0)"
