"""Formats with tiles in tests."""

from axs6.golden.formats import block_format


def small_tiles(name: str) -> str:
    """The format, with tiles that small matrices have several of."""
    return f"{name}_t2x16" if block_format(name).rows > 1 else name
