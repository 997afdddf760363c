"""`axs6 decode`."""

from pathlib import Path
from typing import Annotated

import typer

EXTRA = "files"


def run(
    source: Annotated[
        Path,
        typer.Argument(
            help="A container that `axs6 encode` wrote, or a checkpoint: a folder of .safetensors "
            "files, such a file, or a .gguf or .onnx file."
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="A .safetensors file, a folder for a checkpoint, or a .npy file for a single "
            "tensor of a container."
        ),
    ],
) -> None:
    """Decode packed blocks to the original dtypes of the tensors; float16 becomes float32.

    Weights of checkpoints become bfloat16 tensors, with the values that their loaders compute.

    Example: axs6 decode packed.safetensors weights.safetensors
    """
    from rich.text import Text

    from axs6.commands.output import console
    from axs6.files import decode_file

    out = console()
    with out.status(Text(f"decoding {source}")) as status:
        names = decode_file(source, target, lambda name: status.update(Text(f"decoding {name}")))
    out.print(f"wrote {target}: {len(names)} tensors")
