"""Errors of NumPy's readers of .npy and .npz files for damaged files."""

import lzma
import tokenize
import zipfile
import zlib

DAMAGED: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, EOFError, OverflowError),
    *(SyntaxError, tokenize.TokenError, RecursionError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError),
)
"""Errors of the header, a Python literal that may be nested too deeply, and of zipped members."""
