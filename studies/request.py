"""Arguments of a study of accuracy, checked without importing torch, so that a command refuses at
once."""

from collections.abc import Iterable
from pathlib import Path

from axs6.golden.arguments import check_integer
from axs6.golden.formats import AXS6, BlockFormat, block_format, format_list, name_of
from axs6.golden.formats.modes import MODE_BLOCKS

BACKENDS = ("emulated", "rtl")
BATCH = 256
FORMATS = tuple(name_of(AXS6.with_block(size)) for size in MODE_BLOCKS)
"""Default formats of a study."""

BUILT_IN = ("mlp", "cnn", "transformer")
"""Names of the models of `axs6.studies.models`."""


def check_request(
    formats: Iterable[str | BlockFormat],
    backends: Iterable[str],
    samples: int | None,
    batch: int,
) -> None:
    """Raise TypeError or ValueError unless `study_accuracy` takes these arguments."""
    for fmt in formats:
        block_format(fmt)
    for backend in backends:
        if backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    for name, count in (("samples", samples), ("batch", batch)):
        if count is not None:
            check_integer(name, count, 1)


def chosen_formats(names: Iterable[str], blocks: Iterable[int]) -> list[str]:
    """Formats by lists of names with commas, each in every given block size.

    Raises:
        ValueError: a name is unknown, or a size does not fit its format.
    """
    listed = [*map(block_format, format_list(names))]
    sizes = list(blocks)
    if not sizes:
        return [name_of(fmt) for fmt in listed] or list(FORMATS)
    return [name_of(fmt.with_block(size)) for fmt in listed or [AXS6] for size in sizes]


def user_model(model: str) -> tuple[Path, str] | None:
    """File and function of a model FILE.py:FUNCTION; None for a built-in model.

    Raises:
        OSError: there is no such file.
        ValueError: it is neither.
    """
    if model in BUILT_IN:
        return None
    file, colon, function = model.rpartition(":")
    if not (colon and file and function):
        names = ", ".join(BUILT_IN)
        raise ValueError(f"MODEL must be one of {names} or FILE.py:FUNCTION, not {model!r}")
    path = Path(file)
    check_file(path)
    return path, function


def check_file(path: Path) -> None:
    """Raise FileNotFoundError unless a user's file exists."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
