"""Contents of an energy report."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from axs6.synth.energy_nets import KINDS
from axs6.tables import html_text

PARTS = (*KINDS, "clock")
"""Parts of the energy: nets driven by inputs, gates and flip-flops, and the clock's pins."""

LEAVES_OUT = (
    "glitches: a net changes at most once in a cycle",
    "wires, and what is connected to the outputs",
    "the clock tree's buffers",
    "what changes within a cell",
    "short-circuit currents",
    "leakage",
)


@dataclass(frozen=True)
class Consumption:
    """The energy of one unit on one stimulus.

    Args:
        per_item: mean energy of a cycle, in which the unit takes one item.
        standard_error: of `per_item`, over the sequences.
        parts: what `per_item` is made of, by the names in `PARTS`.
        operations: MACs of an item, or its values.
        activity: mean changes of a net in a cycle, without the clock.
        nets: how many nets there are.
        cycles: pairs of successive cycles that were compared.
    """

    per_item: float
    standard_error: float
    parts: dict[str, float]
    operations: int
    activity: float
    nets: int
    cycles: int

    @property
    def per_operation(self) -> float:
        """Energy of one MAC, or of one value."""
        return self.per_item / self.operations

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {**asdict(self), "per_operation": self.per_operation}


@dataclass(frozen=True)
class EnergyReport:
    """The energy of a unit, beside that of the INT8 dot product on the same data.

    Args:
        unit: what an energy is measured in: "fJ", or "NAND2 inputs": changes of an input of a
            two-input NAND.
        operation: what `operations` counts: "MAC" or "value".
        stimulus: the data.
        sequences: pieces of it, each a copy of the unit from reset on.
        measured: of the unit.
        reference: of `axs6.synth.reference.Int8Dot` with as many lanes as a block has values.
        reference_lanes: that number.
    """

    unit: str
    operation: str
    stimulus: str
    sequences: int
    measured: Consumption
    reference: Consumption
    reference_lanes: int

    @property
    def relative(self) -> float:
        """Energy of an operation over that of a MAC of the reference."""
        return self.measured.per_operation / self.reference.per_operation

    @property
    def relative_error(self) -> float:
        """Standard error of `relative`, the two standard errors taken as independent."""
        shares = [each.standard_error / each.per_item for each in (self.measured, self.reference)]
        return self.relative * sum(share**2 for share in shares) ** 0.5

    def _repr_html_(self) -> str:
        """The energy beside that of the reference, in a notebook."""
        from axs6.synth.pages.energy import energy_table, energy_title

        return html_text(replace(energy_table("the unit", self), notes=[energy_title(self)]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {
            "unit": self.unit,
            "operation": self.operation,
            "stimulus": self.stimulus,
            "sequences": self.sequences,
            **self.measured.to_dict(),
            "relative": self.relative,
            "relative_error": self.relative_error,
            "reference": {"lanes": self.reference_lanes, **self.reference.to_dict()},
            "leaves_out": list(LEAVES_OUT),
        }
