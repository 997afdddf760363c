"""What a study of accuracy can be asked for; without torch, so that a command refuses at once."""

from collections.abc import Iterable

from axs6.golden.spec import check_block_size, check_integer

BACKENDS = ("emulated", "rtl")
BATCH = 256


def check_request(
    blocks: Iterable[int], backends: Iterable[str], samples: int | None, batch: int
) -> None:
    """Raise ValueError unless `study_accuracy` takes these arguments."""
    for block in blocks:
        check_block_size(block)
    for backend in backends:
        if backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    for name, count in (("samples", samples), ("batch", batch)):
        if count is not None:
            check_integer(name, count, 1)
