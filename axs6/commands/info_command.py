"""`axs6 info`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import Json

if TYPE_CHECKING:
    from axs6.files.describe import TensorDescription
    from axs6.golden.formats import BlockFormat

EXTRA = "files"


def run(
    source: Annotated[
        str,
        typer.Argument(
            help="A container that `axs6 encode` wrote, a checkpoint (a file, or a folder of "
            ".safetensors files or with an .onnx file), or a block format: a name that "
            "`axs6 list --formats` shows, or a string such as e4m3fn_e8m0_t32. A file of that "
            "name takes precedence."
        ),
    ],
    show_bytes: Annotated[
        bool,
        typer.Option(
            "--bytes", help="Show the first bytes of a checkpoint's weights, and what they mean."
        ),
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Show the steps by which a library encodes the format, and the first that is not "
            "the definition's."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Check every block of a container or checkpoint and show its tensors, or explain a format.

    Example: axs6 info packed.safetensors
    """
    from axs6.golden.formats import block_format

    path = Path(source)
    if profile is not None:
        _profile(block_format(source), profile, json)
    elif show_bytes:
        _bytes(path, json)
    elif path.is_file() or any(x.suffix in (".safetensors", ".onnx") for x in path.glob("*")):
        _container(path, json, _is_format(source))
    elif path.suffix or len(path.parts) > 1:
        _container(path, json)
    else:
        _format(block_format(source), json)


def _bytes(source: Path, json: str | None) -> None:
    from axs6.commands.output import console
    from axs6.files.checkpoints.drawing import drawn

    if json is not None:
        raise ValueError("--bytes is text: do not give --json with it")
    out = console(None)
    for line in drawn(source):
        out.print(line, soft_wrap=True, markup=False, highlight=False)


def _is_format(text: str) -> bool:
    from axs6.golden.formats import block_format

    try:
        block_format(text)
    except ValueError:
        return False
    return True


def _container(source: Path, json: str | None, is_format: bool = False) -> None:
    from rich.table import Table

    from axs6.commands.output import (
        check_writable,
        console,
        files_of,
        json_path,
        print_table,
        shape_text,
        write_json,
    )
    from axs6.files import describe_file
    from axs6.terminal import shown

    check_writable(json_path(json), inputs=files_of(source))
    out = console(json)
    if is_format:
        out.print(f"{source} is a block format and a file here; this is the file")
    found = describe_file(source)
    table = Table("tensor", "dtype", "shape", "encoded", "blocks", box=None, pad_edge=False)
    table.add_column("bytes", justify="right")
    for each in found:
        encoded = each.encoded
        table.add_row(
            shown(each.name, keep=""),
            each.dtype,
            shape_text(each.shape),
            str(encoded) if encoded else each.layout,
            _blocks(each),
            f"{each.bytes:,}",
        )
    print_table(out, table)
    out.print(f"{sum(each.blocks for each in found):,} blocks, all valid")
    write_json(json, [_figures(each) for each in found])


def _blocks(each: "TensorDescription") -> str:
    if not each.layout and (each.encoded is None or each.encoded.layout.format.has_modes):
        return ", ".join(f"{count:,} {mode}" for mode, count in each.modes.items())
    return f"{each.blocks:,}"


def _figures(each: "TensorDescription") -> dict[str, Any]:
    figures = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    return {**figures, "encoded": each.encoded.metadata if each.encoded else None}


def _format(fmt: "BlockFormat", json: str | None) -> None:
    from axs6.commands.output import check_writable, console, json_path, write_json
    from axs6.golden.explain import explain, facts, fields, values

    check_writable(json_path(json))
    console(json).print("\n".join(explain(fmt)))
    figures = {
        **facts(fmt),
        "block": fmt.block,
        "packed_bytes": fmt.packed_bytes,
        "fields": [{"label": x.label, "first": x.first, "bits": x.bits} for x in fields(fmt)],
        "codes": [
            {"what": what, "code": code, "value": value}
            for what, code, value in values(fmt.element)
        ],
    }
    write_json(json, figures)


def _profile(fmt: "BlockFormat", profile: str, json: str | None) -> None:
    from axs6.commands.output import check_writable, console, json_path, write_json
    from axs6.golden.explain_profile import explain_profile, facts_of_profile

    check_writable(json_path(json))
    console(json).print("\n".join(explain_profile(fmt, profile)), highlight=False)
    write_json(json, facts_of_profile(fmt, profile))
