"""Costs of the products of a model: one row for each place, as text, JSON and a picture."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axs6.tables import Column, Table, html_text, table_of, words

COLUMNS = (
    words("name", "place"),
    Column("calls", "calls", ","),
    Column("macs", "MACs", ","),
    Column("cycles", "cycles", ","),
    Column("utilisation", "used", ".1%"),
    Column("packed_bytes", "packed bytes", ","),
    Column("fp32_bytes", "FP32 bytes", ","),
    Column("qsnr_db", "QSNR dB", ".2f"),
)


@dataclass
class ReportRow:
    """The products of one place.

    Args:
        name: the module, and its part if it has several products. backend: name of the backend.
        calls: number of runs. macs: multiplications, without padding zeros. cycles: clock cycles of
        the hardware; None without simulation. busy_cycles: cycles times utilisation. packed_bytes:
        both operands as packed blocks. fp32_bytes: both operands in FP32. signal, noise: sums of
        squares of the FP32 product of the original operands, and of the error. bits_different: bits
        in which the other backend differs; None without another backend.
    """

    name: str
    backend: str
    calls: int = 0
    macs: int = 0
    cycles: int | None = None
    busy_cycles: float = 0.0
    packed_bytes: int = 0
    fp32_bytes: int = 0
    signal: float = 0.0
    noise: float = 0.0
    bits_different: int | None = None

    @property
    def utilisation(self) -> float | None:
        """Utilisation of the tile, 0 to 1."""
        return self.busy_cycles / self.cycles if self.cycles else None

    @property
    def qsnr(self) -> float | None:
        """Signal to quantisation noise in dB; None without noise or if values overflow."""
        if not (self.signal and self.noise and math.isfinite(self.signal + self.noise)):
            return None
        return 10 * math.log10(self.signal / self.noise)

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "name": self.name,
            "backend": self.backend,
            "calls": self.calls,
            "macs": self.macs,
            "cycles": self.cycles,
            "utilisation": self.utilisation,
            "packed_bytes": self.packed_bytes,
            "fp32_bytes": self.fp32_bytes,
            "qsnr_db": self.qsnr,
            "bits_different": self.bits_different,
        }


@dataclass
class Report:
    """The rows, in the order in which the places were first run; `str` gives them as tables.

    Args:
        compare: the other backend, if any.
        rows: products in AXS-6.
        unconverted: products that torch computed, with names, calls and MACs alone.
    """

    compare: str | None = None
    rows: list[ReportRow] = field(default_factory=list)
    unconverted: list[ReportRow] = field(default_factory=list)

    @property
    def total(self) -> ReportRow:
        """The rows of products in AXS-6 added up."""
        total = ReportRow("total", "")
        for row in self.rows:
            total.calls += row.calls
            total.macs += row.macs
            total.busy_cycles += row.busy_cycles
            total.packed_bytes += row.packed_bytes
            total.fp32_bytes += row.fp32_bytes
            if row.cycles is not None:
                total.cycles = (total.cycles or 0) + row.cycles
            if row.bits_different is not None:
                total.bits_different = (total.bits_different or 0) + row.bits_different
        return total

    def table(self) -> Table:
        """A row for each place, and their total."""
        columns = [*COLUMNS]
        if self.compare:
            columns.append(Column("bits_different", f"bits unlike {self.compare}", ","))
        return table_of(columns, [row.as_dict() for row in [*self.rows, self.total]])

    def unconverted_table(self) -> Table:
        """A row for each place of products that torch computed."""
        first = words("name", "not converted, by torch")
        return table_of([first, *COLUMNS[1:3]], [row.as_dict() for row in self.unconverted])

    def __str__(self) -> str:
        lines = _aligned(self.table())
        if self.unconverted:
            lines += ["", *_aligned(self.unconverted_table())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        more = html_text(self.unconverted_table()) if self.unconverted else ""
        return html_text(self.table()) + more

    def to_json(self) -> str:
        """The report as JSON: `compare`, `layers`, `total` and `unconverted`."""
        layers = [row.as_dict() for row in self.rows]
        content = {
            "compare": self.compare,
            "layers": layers,
            "total": self.total.as_dict(),
            "unconverted": [
                {"name": row.name, "calls": row.calls, "macs": row.macs} for row in self.unconverted
            ],
        }
        return json.dumps(content, indent=2, allow_nan=False)

    def plot(self, path: str | Path) -> None:
        """Draw QSNR, MACs and bytes of each place, and its utilisation if simulated.

        Args:
            path: file to write; its suffix gives the format (.png, .svg, .pdf).

        Raises:
            ImportError: matplotlib is not installed.
        """
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter

        names = [row.name for row in self.rows]
        places = range(len(names))
        figure = Figure(figsize=(11, 1.6 + 0.28 * len(names)), layout="constrained")
        panels = figure.subplots(1, 4 if self.total.cycles else 3, sharey=True)
        panels[0].barh(places, [row.qsnr or 0.0 for row in self.rows])
        panels[0].set_xlabel("QSNR (dB)")
        panels[0].set_yticks(places, names)
        panels[0].invert_yaxis()
        panels[1].barh(places, [row.macs for row in self.rows])
        panels[1].set_xlabel("MACs")
        panels[2].barh(places, [row.fp32_bytes for row in self.rows], label="FP32")
        panels[2].barh(places, [row.packed_bytes for row in self.rows], label="AXS-6, packed")
        panels[2].set_xlabel("operand bytes")
        for counted in panels[1:3]:
            counted.xaxis.set_major_formatter(EngFormatter(sep=""))
        panels[2].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        if self.total.cycles:
            panels[3].barh(places, [100 * (row.utilisation or 0.0) for row in self.rows])
            panels[3].set_xlabel("utilisation (%)")
        figure.savefig(path)


def _aligned(table: Table) -> list[str]:
    """Lines of a table, names to the left and numbers to the right."""
    cells = [table.headings, *table.texts]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
