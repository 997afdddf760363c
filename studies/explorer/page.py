"""The explorer's page: one HTML file that holds its style, script and data."""

import json
from dataclasses import asdict
from importlib.resources import files
from string import Template
from typing import Any, Final

from axs6.golden.formats import (
    CATALOG,
    BlockFormat,
    Element,
    Exponent,
    Float,
    Integer,
    Real,
    Scale,
    Selected,
    Shift,
    SignMagnitude,
    TwosComplement,
    Unsigned,
    ValueTable,
)
from axs6.studies.explorer.measured import measured

KINDS: Final = {
    SignMagnitude: "sign_magnitude",
    TwosComplement: "twos_complement",
    Unsigned: "unsigned",
    Float: "float",
    ValueTable: "table",
    Selected: "selected",
    Shift: "shift",
    Exponent: "exponent",
    Integer: "integer",
    Real: "real",
}
"""Names of elements and scales on the page."""

SCRIPTS: Final = (
    *("exact.js", "formats.js", "blocks.js"),
    *("encoding.js", "plots.js", "costs.js"),
)
"""Parts of the script; each may use earlier parts."""

ARITHMETIC: Final = SCRIPTS[:3]
"""The parts that do not depend on the page."""


def page() -> str:
    """The page: deterministic, self-contained, without network access."""
    return Template(part("page.html")).substitute(
        style=part("style.css"),
        script=script(SCRIPTS),
        formats=embedded({name: describe(fmt) for name, fmt in CATALOG.items()}),
        measured=embedded(measured()),
    )


def script(names: tuple[str, ...]) -> str:
    """Parts of the script, in their order."""
    return "\n".join(part(name) for name in names)


def part(name: str) -> str:
    """A file beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """Data as JSON that no HTML parser takes for the end of its element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def describe(fmt: BlockFormat) -> dict[str, Any]:
    """A block format as plain data, which the script reads.

    `element` and each of `levels`, fine to coarse, are the fields of their classes with a `kind`
    beside them; a level has its `group` and `rows` too.
    """
    return {
        "element": _fields(fmt.element),
        "levels": [{**_fields(x.scale), "group": x.group, "rows": x.rows} for x in fmt.levels],
        "modes": [mode.label for mode in fmt.modes],
    }


def _fields(x: Element | Scale) -> dict[str, Any]:
    if isinstance(x, Selected):
        return {"kind": KINDS[type(x)], "parts": [_fields(part) for part in x.parts]}
    fields = {name: list(x) if isinstance(x, tuple) else x for name, x in asdict(x).items()}
    return {"kind": KINDS[type(x)], **fields}
