"""AXS-6 in Python: `import axs6` gives the golden model and needs only NumPy.

Hardware (`axs6.hw`), simulation (`axs6.sim`) and synthesis (`axs6.synth`) are sub-packages that
load what they need when they are imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axs6.golden import (
        BlockFormat,
        Blocks,
        Planar,
        accumulate,
        block_dot,
        block_format,
        checkpoint_pair,
        decode,
        encode,
        encode_as,
        errors_by_binade,
        from_checkpoint,
        from_planar,
        matmul,
        pack,
        packed_bytes,
        planar,
        qsnr,
        unpack,
    )
    from axs6.golden.formats import formats

__version__ = "0.1.0"

__all__ = [
    "BlockFormat",
    "Blocks",
    "Planar",
    "accumulate",
    "block_dot",
    "block_format",
    "checkpoint_pair",
    "decode",
    "encode",
    "encode_as",
    "errors_by_binade",
    "formats",
    "from_checkpoint",
    "from_planar",
    "matmul",
    "pack",
    "packed_bytes",
    "planar",
    "qsnr",
    "unpack",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load the golden model, and NumPy with it, at first use."""
        if name not in (*__all__, "golden"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        golden, catalog = import_module("axs6.golden"), import_module("axs6.golden.formats")
        here = {each: getattr(golden, each) for each in __all__ if each != "formats"}
        globals().update(here, formats=catalog.formats)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
