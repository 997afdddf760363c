"""The C++ of a component: what Yosys writes, and how arrays reach its ports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from axs6.hw.core.amaranth_internals import YosysError
from axs6.hw.core.layouts import Field, port_fields
from axs6.hw.core.rtlil import convert, without_fields
from axs6.sim.compiled import element_type, stall_header
from axs6.sim.control import control_header
from axs6.sim.cxxrtl.concatenations import balanced
from axs6.sim.tools import ToolError, yosys

INPUT, OUTPUT = "top.p_i__payload", "top.p_o__payload"
"""The payloads in CXXRTL's model."""

HEADERS = ("fields.hpp", "stream.hpp")

FLATTENED = 100_000
"""Characters of RTLIL of the largest design that becomes one function. Its simulation is several
times as fast as with one for each module; over larger ones compilers take many times as long."""


@dataclass(frozen=True)
class CxxrtlDesign:
    """A component with streams `i` and `o` as RTLIL, and the fields of its two payloads.

    `name` is its scope in waveforms.
    """

    name: str
    rtlil: str
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]


def design(component: Any, name: str) -> CxxrtlDesign:
    """RTLIL of a component with streams `i` and `o`."""
    inputs, outputs = port_fields(component)
    return CxxrtlDesign(name, convert(component, "top"), tuple(inputs), tuple(outputs))


@cache
def model_source(design: CxxrtlDesign, waves: bool) -> str:
    """C++ of a design, complete: it includes the headers of `runtime`.

    Args:
        design: what to simulate.
        waves: whether waveforms can be written, which makes it some times as long.

    Raises:
        ToolError: Yosys is missing or fails.
    """
    rtlil = design.rtlil if waves else without_fields(design.rtlil)
    whole = not waves and len(rtlil) <= FLATTENED
    hierarchy, debug = "" if whole else "-noflatten", "-g4" if waves else "-g0"
    write = f"write_cxxrtl {hierarchy} {debug}"
    script = f"read_rtlil <<rtlil\n{rtlil}\nrtlil\n{write}\n"
    try:
        module = balanced(yosys().run(["-q", "-"], script, ignore_warnings=True))
    except YosysError as error:
        raise ToolError(f"Yosys could not write the C++ of {design.name}: {error}") from error
    parts = [
        module,
        '#include "fields.hpp"',
        "using Top = cxxrtl_design::p_top;",
        f'#define MODULE "{design.name}"',
        _moves("put", "Top& top, const void* const* arrays", INPUT, design.inputs),
        _moves("take", "const Top& top, void* const* arrays", f"now({OUTPUT})", design.outputs),
        *_named(design if waves else None),
        '#include "stream.hpp"',
    ]
    return "\n".join(parts) + "\n"


@cache
def runtime() -> Mapping[str, str]:
    """Texts of every header that a model includes, by path: CXXRTL's own and those of the streams.

    Raises:
        ToolError: Yosys is missing.
    """
    root = Path(yosys().data_dir()) / "include" / "backends" / "cxxrtl" / "runtime"
    own = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.h")}
    headers = {name: Path(__file__).with_name(name).read_text() for name in HEADERS}
    return own | headers | stall_header() | control_header()


def _moves(verb: str, arguments: str, port: str, fields: Sequence[Field]) -> str:
    """A function that moves one item between a payload port and a row of arrays."""
    lines = [f"static void {verb}_item({arguments}, int64_t row) {{"]
    for index, field in enumerate(fields):
        kind = element_type(field).name + "_t"
        places = f"{field.offset}, {field.width}, {field.count}, {kind}"
        lines.append(f"  {verb}_field<{places}>({port}.data, arrays[{index}], row);")
    return "\n".join([*lines, "}"])


def _named(design: CxxrtlDesign | None) -> list[str]:
    """The signals of a waveform that are fields of payloads, in scopes `i.payload`; or none."""
    sides = {"i": (INPUT, design.inputs), "o": (OUTPUT, design.outputs)} if design else {}
    fields = [
        (f"{side}{index}", side, port, field)
        for side, (port, each) in sides.items()
        for index, field in enumerate(each)
    ]
    shapes = [", ".join(map(str, (f.offset, f.width, *f.shape))) for *_, f in fields]
    kinds = [
        f"  NamedField<{shape}> {each[0]};" for shape, each in zip(shapes, fields, strict=True)
    ]
    update = [f"    {name}.update(now({port}));" for name, _, port, _ in fields]
    add = [
        f'    {name}.add(items, MODULE " {side} payload {field.name.replace(".", " ")}");'
        for name, side, _, field in fields
    ]
    return [
        "struct NamedFields {",
        *kinds,
        *("  void update(const Top& top) {", *update, "  }"),
        *("  void add(cxxrtl::debug_items& items) {", *add, "  }"),
        "};",
    ]
