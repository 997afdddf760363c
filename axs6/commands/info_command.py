"""`axs6 info`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, with_options

if TYPE_CHECKING:
    from axs6.commands.results import ResultFiles
    from axs6.files.describe import TensorDescription
    from axs6.golden.formats import BlockFormat

EXTRA = "files"


@with_options(results=RESULTS)
def run(
    source: Annotated[
        str,
        typer.Argument(
            help="A container that `axs6 encode` wrote, a checkpoint (a file, or a folder of "
            ".safetensors files or with an .onnx file), or a block format: a name that "
            "`axs6 list --formats` shows, or a string such as e4m3fn_e8m0_t32. A file of that "
            "name takes precedence.",
            autocompletion=format_names,
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
    *,
    results: dict[str, Any],
) -> None:
    """Check every block of a container or checkpoint and show its tensors, or explain a format.

    Example: axs6 info packed.safetensors
    """
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import block_format

    files = ResultFiles(**results)
    path = Path(source)
    if profile is not None:
        _profile(block_format(source), profile, files)
    elif show_bytes:
        _bytes(path, files)
    elif path.is_file() or any(x.suffix in (".safetensors", ".onnx") for x in path.glob("*")):
        _container(path, files, _is_format(source))
    elif path.suffix or len(path.parts) > 1:
        _container(path, files)
    else:
        _format(block_format(source), files)


def _bytes(source: Path, files: "ResultFiles") -> None:
    from axs6.commands.output import console
    from axs6.files.checkpoints.drawing import drawn

    if files.json is not None:
        raise ValueError("--bytes is text: do not give --json with it")
    files.check_no_table("--bytes is text")
    out = console()
    for line in drawn(source):
        out.print(line, soft_wrap=True, markup=False, highlight=False)


def _is_format(text: str) -> bool:
    from axs6.golden.formats import block_format

    try:
        block_format(text)
    except ValueError:
        return False
    return True


def _container(source: Path, files: "ResultFiles", is_format: bool = False) -> None:
    from axs6.commands.output import files_of, one_line, print_table, shape_text
    from axs6.files import describe_file
    from axs6.tables import Column, Written, table_of, words

    files.check(inputs=files_of(source))
    out = files.console()
    if is_format:
        out.print(f"{source} is a block format and a file here; this is the file")
    found = describe_file(source)
    columns = [
        words("name", "tensor", one_line),
        words("dtype"),
        words("shape", form=shape_text),
        words("encoded"),
        words("blocks"),
        Column("bytes", "bytes", ","),
        *(Column(name, None) for name in ("modes", "layout")),
    ]
    figures = [_figures(each) for each in found]
    rows = [
        {
            **known,
            "encoded": Written(known["encoded"], str(each.encoded or each.layout)),
            "blocks": Written(each.blocks, _blocks(each)),
        }
        for each, known in zip(found, figures, strict=True)
    ]
    table = table_of(columns, rows)
    print_table(out, table)
    out.print(f"{sum(each.blocks for each in found):,} blocks, all valid")
    files.write(figures, table)


def _blocks(each: "TensorDescription") -> str:
    if not each.layout and (each.encoded is None or each.encoded.layout.format.has_modes):
        return ", ".join(f"{count:,} {mode}" for mode, count in each.modes.items())
    return f"{each.blocks:,}"


def _figures(each: "TensorDescription") -> dict[str, Any]:
    figures = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    return {**figures, "encoded": each.encoded.metadata if each.encoded else None}


def _format(fmt: "BlockFormat", files: "ResultFiles") -> None:
    from axs6.commands.list_command import format_table
    from axs6.golden.explain import explain, facts, fields, values

    files.check()
    files.console().print("\n".join(explain(fmt)))
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
    files.write(figures, format_table([fmt]))


def _profile(fmt: "BlockFormat", profile: str, files: "ResultFiles") -> None:
    from axs6.commands.output import write_json
    from axs6.golden.explain_profile import explain_profile, facts_of_profile

    files.check_no_table("--profile is text")
    files.check()
    files.console().print("\n".join(explain_profile(fmt, profile)), highlight=False)
    write_json(files.json, facts_of_profile(fmt, profile))
