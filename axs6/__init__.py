"""AXS-6 in Python: `import axs6` gives the golden model and needs NumPy alone.

Hardware (`axs6.hw`), simulation (`axs6.sim`) and synthesis (`axs6.synth`) are sub-packages that
load what they need when they are imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axs6.golden import (
        Blocks,
        accumulate,
        block_dot,
        decode,
        encode,
        matmul,
        pack,
        packed_bytes,
        unpack,
    )

__version__ = "0.1.0"

__all__ = [
    "Blocks",
    "accumulate",
    "block_dot",
    "decode",
    "encode",
    "matmul",
    "pack",
    "packed_bytes",
    "unpack",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load the golden model, and with it NumPy, when it is first asked for."""
        if name not in (*__all__, "golden"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        golden = import_module("axs6.golden")
        globals().update({each: getattr(golden, each) for each in __all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
