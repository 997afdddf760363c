"""What a study of accuracy can be asked for; without torch, so that a command refuses at once."""

from collections.abc import Iterable
from pathlib import Path

from axs6.golden.arguments import check_integer
from axs6.golden.formats import AXS6

BACKENDS = ("emulated", "rtl")
BATCH = 256
BUILT_IN = ("mlp", "cnn", "transformer")
"""Names of the models of `axs6.sim.study.models`."""


def check_request(
    blocks: Iterable[int], backends: Iterable[str], samples: int | None, batch: int
) -> None:
    """Raise ValueError unless `study_accuracy` takes these arguments."""
    for block in blocks:
        AXS6.with_block(block)
    for backend in backends:
        if backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    for name, count in (("samples", samples), ("batch", batch)):
        if count is not None:
            check_integer(name, count, 1)


def user_model(model: str) -> tuple[Path, str] | None:
    """File and function of a model that is called FILE.py:FUNCTION; None for a built-in one.

    Raises:
        OSError: there is no such file.
        ValueError: it is called neither.
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
    """Raise FileNotFoundError unless a user's file is there."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
