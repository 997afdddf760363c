"""The file of the Pareto study: a line of JSON for each format that was measured."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

from axs6.replacing import replacing
from axs6.synth.flow import flow

OPTIONS: Final = {"target": "sky130", "breakdown": False, "share": False}
"""Arguments of `axs6.synth.area.area`, which leave out what only takes time in a sweep."""


@dataclass(frozen=True)
class Conditions:
    """What the measurements of one study have in common.

    Args:
        reduction: lanes of a dot product.
        vectors: those that QSNR is measured on.
        pyosys: version of the package with Yosys and ABC.
        flow: digest of the commands, scripts and library of synthesis.
    """

    reduction: int
    vectors: int
    pyosys: str
    flow: str

    @classmethod
    def here(cls, reduction: int, vectors: int) -> Self:
        """Those of this installation."""
        plan = flow(str(OPTIONS["target"]), share=bool(OPTIONS["share"]))
        return cls(reduction, vectors, version("pyosys"), plan.digest()[:16])


@dataclass(frozen=True)
class Row:
    """A format that was measured, or that has no hardware.

    Args:
        format: its name, or its string where it has none.
        conditions: under which it was measured.
        verilog: digest of the dot product's Verilog.
        yosys: what Yosys says that it is.
        area, sequential_area: of the dot product and of its registers, in square micrometres.
        flip_flops: their number.
        delay_ps: the longest path.
        qsnr_db: signal over quantisation noise.
        reason: why there is nothing of all this; None if there is.
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
            raise ValueError(f"it must be a row of this study: {error}") from None


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of a file by format; none where there is no file.

    Raises:
        OSError: it cannot be read.
        ValueError: a line of it is no row; the message names it.
    """
    rows: dict[str, Row] = {}
    if not path.exists():
        return rows
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = Row.of_line(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        rows[row.format] = row
    return rows


def write_rows(path: Path, rows: Mapping[str, Row], order: Iterable[str]) -> None:
    """Write rows, complete or not at all: first those of some formats in their order.

    Raises:
        OSError: the file cannot be written.
    """
    names = [name for name in dict.fromkeys([*order, *rows]) if name in rows]
    with replacing(path) as file:
        file.write("".join(rows[name].to_line() for name in names).encode())
