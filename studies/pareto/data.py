"""The file of the Pareto study: a line of JSON for each measured format."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

from axs6.golden.formats import block_format
from axs6.replacing import replacing
from axs6.studies.pareto.space import BASELINE

OPTIONS: Final[dict[str, Any]] = {"target": "sky130", "breakdown": False, "share": False}
"""Options of `axs6.synth.flow.Synthesis` that skip work which a sweep does not need."""


BYTE: Final = 8
"""Bits that a value of FP8 takes in memory."""


@dataclass(frozen=True)
class Conditions:
    """Conditions of the measurements of one study.

    Args:
        reduction: lanes of a dot product.
        vectors: number of vectors for QSNR.
        pyosys: version of the package with Yosys and ABC.
        flow: digest of the commands, scripts and library of synthesis.
    """

    reduction: int
    vectors: int
    pyosys: str
    flow: str

    @classmethod
    def here(cls, reduction: int, vectors: int) -> Self:
        """The conditions of this installation."""
        from axs6.synth.flow import Synthesis, flow

        plan = flow(Synthesis(**OPTIONS))
        return cls(reduction, vectors, version("pyosys"), plan.digest()[:16])


@dataclass(frozen=True)
class FormatRow:
    """A format that was measured, or that has no hardware.

    Args:
        format: its name, or its string if it has none. conditions: conditions of the measurement.
        verilog: digest of the dot product's Verilog. yosys: version reported by Yosys. area,
        sequential_area: of the dot product and of its registers, in square micrometres. flip_flops:
        their number. delay_ps: the longest path. qsnr_db: signal over quantisation noise. reason:
        why the figures are missing; None if they are present.
    """

    format: str
    conditions: Conditions
    verilog: str | None = None
    yosys: str | None = None
    area: float | None = None
    sequential_area: float | None = None
    flip_flops: int | None = None
    delay_ps: float | None = None
    qsnr_db: float | None = None
    reason: str | None = None

    def to_line(self) -> str:
        """The row as a line of the file."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({**known.pop("conditions"), **known}) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """The row of a line. Raises ValueError for any other line."""
        try:
            values: dict[str, Any] = json.loads(line)
            shared = {each.name: values.pop(each.name) for each in fields(Conditions)}
            return cls(**values, conditions=Conditions(**shared))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is not a row of this study: {error}") from None


@dataclass(frozen=True)
class Measurement:
    """A format that was measured.

    Args:
        format: its name, or its string.
        area: of its dot product, relative to the baseline. memory: bits per value of 256 values in
        lines of 64 bytes, over the 8 of FP8. qsnr_db: signal over quantisation noise.
        delay_ps: the longest path of its dot product.
    """

    format: str
    area: float
    memory: float
    qsnr_db: float
    delay_ps: float

    @property
    def cost(self) -> float:
        """Area times memory."""
        return self.area * self.memory


def read_rows(path: Path) -> dict[str, FormatRow]:
    """The rows of a file by format; none without a file.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is invalid; the message names it.
    """
    rows: dict[str, FormatRow] = {}
    if not path.exists():
        return rows
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = FormatRow.of_line(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        rows[row.format] = row
    return rows


def write_rows(path: Path, rows: Mapping[str, FormatRow], order: Iterable[str]) -> None:
    """Write rows, complete or not at all: first those of some formats in their order.

    Raises:
        OSError: the file cannot be written.
    """
    names = [name for name in dict.fromkeys([*order, *rows]) if name in rows]
    with replacing(path) as file:
        file.write("".join(rows[name].to_line() for name in names).encode())


def baseline_of(rows: Mapping[str, FormatRow]) -> float:
    """Baseline for relative areas.

    Raises:
        ValueError: a format of the baseline is not among the rows.
    """
    areas = [rows[name].area for name in BASELINE if name in rows]
    whole = max((area for area in areas if area is not None), default=0.0)
    if not whole or len(areas) < len(BASELINE):
        raise ValueError(f"areas are relative to those of {' and '.join(BASELINE)}: measure them")
    return whole


def measurements_of(rows: Mapping[str, FormatRow]) -> dict[str, Measurement]:
    """Rows of the same conditions, as points; without formats that have no hardware.

    Raises:
        ValueError: a format of the baseline is not among the rows.
    """
    whole = baseline_of(rows)
    return {name: _measurement(row, whole) for name, row in rows.items() if row.area is not None}


def _measurement(row: FormatRow, whole: float) -> Measurement:
    assert row.area is not None
    assert row.qsnr_db is not None
    assert row.delay_ps is not None
    memory = block_format(row.format).bits_a_value[2] / BYTE
    return Measurement(row.format, row.area / whole, float(memory), row.qsnr_db, row.delay_ps)
