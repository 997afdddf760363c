"""A compact cell library of the 130 nm process sky130, and the Liberty text of it.

Names, functions, areas (square micrometres) and input capacitances (femtofarads, the mean of both
edges) are those published for sky130_fd_sc_hd at the typical corner (25 degrees C, 1.8 V). Delays
and slews are a linear model of this project: planes fitted to the published tables of the arcs
from an input pin to an output, with least squares of the relative error, at slews of 20 to 300 ps
and loads of 1 to 16 fF for each unit of drive strength, so that

    delay = delay + delay_per_ff * load + delay_per_ps * input slew

and likewise for the slew. `sky130.csv` holds the gates, a number for each input pin in a
column. Setup times are those at a data slew of
100 ps and a sharp clock.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import groupby

from axs6.synth.functions import truth_table

NAME = "sky130_compact"
PREFIX = "sky130_fd_sc_hd__"

_SLEWS = (0.0, 100.0, 1000.0)
_LOADS = (0.0, 10.0, 100.0)
_EDGES = ("rise", "fall")
_TERMS = ("", "_per_ff", "_per_ps")

Plane = tuple[float, float, float]
"""A value at no load and no slew, and what each femtofarad and picosecond adds to it, in ps."""


@dataclass(frozen=True)
class _Register:
    """A register: what Liberty says of its state, and its model."""

    area: float
    capacitances: Mapping[str, float]
    clock: str
    state: str
    rise: tuple[Plane, Plane]
    fall: tuple[Plane, Plane]
    setups: Mapping[str, tuple[float, float]]


_REGISTERS = {
    "dfxtp_1": _Register(
        20.0192,
        {"CLK": 1.79, "D": 1.68},
        "CLK",
        'ff (IQ, IQN) { clocked_on : "CLK"; next_state : "D"; }',
        ((267, 6.61, 0.319), (17.7, 8.83, 0)),
        ((266, 3.96, 0.315), (15.6, 4.18, 0)),
        {"D": (72, 143)},
    ),
    "dfrtp_1": _Register(
        25.024,
        {"CLK": 1.79, "D": 1.98, "RESET_B": 3.6},
        "CLK",
        'ff (IQ, IQN) { clocked_on : "CLK"; next_state : "D"; clear : "!RESET_B"; }',
        ((281, 6.69, 0.324), (24.1, 7.99, 0)),
        ((324, 5.13, 0.318), (27.8, 4.46, 0)),
        {"D": (78, 146)},
    ),
    "dfstp_2": _Register(
        26.2752,
        {"CLK": 1.79, "D": 2.36, "SET_B": 3.36},
        "CLK",
        'ff (IQ, IQN) { clocked_on : "CLK"; next_state : "D"; preset : "!SET_B"; }',
        ((486, 3.57, 0.314), (22.9, 4.4, 0)),
        ((336, 2.02, 0.319), (16.7, 2.02, 0)),
        {"D": (71, 99)},
    ),
    "edfxtp_1": _Register(
        30.0288,
        {"CLK": 1.76, "D": 1.8, "DE": 3.29},
        "CLK",
        'ff (IQ, IQN) { clocked_on : "CLK"; next_state : "(D*DE)+(IQ*!DE)"; }',
        ((279, 7.22, 0.324), (27.4, 8.47, 0)),
        ((317, 7.47, 0.318), (52.6, 5.4, 0)),
        {"D": (148, 279), "DE": (298, 263)},
    ),
    "dlxtp_1": _Register(
        15.0144,
        {"D": 1.77, "GATE": 1.75},
        "GATE",
        'latch (IQ, IQN) { enable : "GATE"; data_in : "D"; }',
        ((273, 6.68, 0.276), (17.7, 8.93, 0)),
        ((244, 3.93, 0.272), (15.4, 4.19, 0)),
        {"D": (210, 67)},
    ),
}


def liberty() -> str:
    """Return the library as Liberty text, its delays as tables of the linear model."""
    cells = [*_gates(), *(_register(name, each) for name, each in _REGISTERS.items())]
    points = f'index_1 ("{_list(_SLEWS)}"); index_2 ("{_list(_LOADS)}");'
    return "\n".join(
        [
            f"library ({NAME}) {{",
            "  delay_model : table_lookup;",
            '  time_unit : "1ps";',
            "  capacitive_load_unit (1, ff);",
            "  nom_voltage : 1.8;",
            "  lu_table_template (plane) {",
            "    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;",
            f"    {points}",
            "  }",
            *cells,
            "}",
            "",
        ]
    )


def _gates() -> Iterator[str]:
    text = resources.files("axs6.synth").joinpath("sky130.csv").read_text(encoding="utf-8")
    for name, rows in groupby(csv.DictReader(text.splitlines()), key=lambda row: row["cell"]):
        outputs = list(rows)
        inputs = dict(pair.split("=") for pair in outputs[0]["capacitances"].split())
        pins = [_input(pin, float(value)) for pin, value in inputs.items()]
        for row in outputs:
            arcs = _arcs(row, tuple(inputs))
            pins.append(_output(row["output"], row["function"], arcs))
        yield _cell(name, float(outputs[0]["area"]), pins)


def _arcs(row: Mapping[str, str], inputs: tuple[str, ...]) -> list[str]:
    return [
        _arc(
            pin,
            sense,
            "combinational",
            {e: (_plane(row, f"{e}_delay", k), _plane(row, f"{e}_slew", k)) for e in _EDGES},
        )
        for k, (pin, sense) in enumerate(_senses(row["function"], inputs).items())
    ]


def _plane(row: Mapping[str, str], column: str, pin: int) -> Plane:
    """Read the plane of one input pin: each column has a number for each pin."""
    constant, load, slew = (float(row[column + term].split()[pin]) for term in _TERMS)
    return constant, load, slew


def _register(name: str, register: _Register) -> str:
    pins = [register.state]
    for pin, capacitance in register.capacitances.items():
        if pin == register.clock:
            pins.append(_input(pin, capacitance, "clock : true;"))
        else:
            pins.append(_input(pin, capacitance, _setups(register, pin)))
    planes = {"rise": register.rise, "fall": register.fall}
    launch = _arc(register.clock, "non_unate", "rising_edge", planes)
    pins.append(_output("Q", "IQ", [launch]))
    return _cell(name, register.area, pins)


def _senses(function: str, inputs: tuple[str, ...]) -> dict[str, str]:
    """Say for each input whether a rise of it can make the output rise, fall, or do either."""
    truth = truth_table(function, inputs)
    assert truth is not None, function
    senses = {}
    for i, pin in enumerate(inputs):
        low = [row for row in range(1 << len(inputs)) if not row >> i & 1]
        changes = {(truth >> (row | 1 << i) & 1) - (truth >> row & 1) for row in low} - {0}
        senses[pin] = (
            "non_unate"
            if len(changes) > 1
            else "positive_unate"
            if changes == {1}
            else "negative_unate"
        )
    return senses


def _arc(source: str, sense: str, kind: str, planes: Mapping[str, tuple[Plane, Plane]]) -> str:
    tables = " ".join(
        f"cell_{edge} {_table(delay)} {edge}_transition {_table(slew)}"
        for edge, (delay, slew) in planes.items()
    )
    return (
        f'timing () {{ related_pin : "{source}"; timing_type : {kind}; '
        f"timing_sense : {sense}; {tables} }}"
    )


def _table(plane: Plane) -> str:
    constant, per_load, per_slew = plane
    rows = [
        _list(constant + per_load * load + per_slew * slew for load in _LOADS) for slew in _SLEWS
    ]
    values = ", ".join(f'"{row}"' for row in rows)
    return f"(plane) {{ values ({values}); }}"


def _setups(register: _Register, pin: str) -> str:
    if pin not in register.setups:
        return ""
    rise, fall = register.setups[pin]
    kind = "setup_falling" if register.state.startswith("latch") else "setup_rising"
    return (
        f'timing () {{ related_pin : "{register.clock}"; timing_type : {kind}; '
        f'rise_constraint (scalar) {{ values ("{rise}"); }} '
        f'fall_constraint (scalar) {{ values ("{fall}"); }} }}'
    )


def _cell(name: str, area: float, pins: list[str]) -> str:
    return "\n".join(
        [
            f"  cell ({PREFIX}{name}) {{",
            f"    area : {area};",
            *(f"    {pin}" for pin in pins),
            "  }",
        ]
    )


def _input(pin: str, capacitance: float, more: str = "") -> str:
    return f"pin ({pin}) {{ direction : input; capacitance : {capacitance}; {more} }}"


def _output(pin: str, function: str, arcs: list[str]) -> str:
    lines = "\n      ".join(arcs)
    return f'pin ({pin}) {{ direction : output; function : "{function}";\n      {lines} }}'


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
