"""The kernels as a shared library, compiled once for the current processor and instruction set."""

import ctypes
import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_float, c_int, c_int64, c_void_p
from functools import cache
from importlib.resources import files
from typing import Any

from axs6.sim.cache import CacheError
from axs6.sim.compiler import compiled
from axs6.sim.tools import ToolError

NEEDED_BY = "the kernels of torch's emulation"
OPTIONS = ("-O3", "-pthread")

BASELINE = {"x86_64": "-march=x86-64", "AMD64": "-march=x86-64"}
"""Compiler options that leave out vector instructions, by processor."""

MACHINE = platform.machine()

FORMS: dict[str, tuple[str, ...]] = {
    "native": tuple("-mprefer-vector-width=512" for name in BASELINE if name == MACHINE),
    "avx512": tuple(
        option
        for name in BASELINE
        if name == MACHINE
        for option in ("-mprefer-vector-width=512", "-mno-amx-bf16")
    ),
    "avx2": tuple("-mno-avx512f" for name in BASELINE if name == MACHINE),
    "plain": tuple(option for name, option in BASELINE.items() if name == MACHINE),
}
"""Forms that can be chosen, and the compiler's options for them. "native" is the best one here."""

NAMES = ("amx", "avx512_vnni", "avx2", "plain")
"""Names that a library reports for itself, best first."""

WORDS = 32
PART = 1 << 20
"""Bytes with a digest of their own, of so many words of 64 bits."""

_log = logging.getLogger("axs6")


class _State:
    """The form that is used."""

    form: str | None = "native"


ADDRESSES = (
    *("words", "scales", "limits", "b_factors"),
    *("a", "a_factors", "a_outer", "b_outer", "bias"),
)
"""Arrays that a product reads, those of its right operand first."""


class Shape(ctypes.Structure):
    """Sizes of a batch of products, and the threads that share them."""

    _fields_ = [
        (name, c_int64) for name in ("batches", "rows", "columns", "blocks", "block", "threads")
    ]


class OperandAddresses(ctypes.Structure):
    """Addresses of the inputs of a product."""

    _fields_ = [(name, c_void_p) for name in ADDRESSES]


def sources() -> dict[str, str]:
    """Texts of the library's files, by name."""
    folder = files(__package__)
    names = sorted(x.name for x in folder.iterdir() if x.name.endswith((".hpp", ".cpp")))
    return {name: (folder / name).read_text() for name in names}


@cache
def load(form: str = "native") -> ctypes.CDLL:
    """The library in a form.

    Args:
        form: a key of `FORMS`; what the processor does not have is left out of it.

    Raises:
        ToolError: g++ is missing or fails.
        OSError: the cache cannot be written.
    """
    path = compiled("kernels", NEEDED_BY, sources(), (*OPTIONS, *FORMS[form]))
    library = ctypes.CDLL(str(path))
    _declare(library)
    return library


def _declare(library: ctypes.CDLL) -> None:
    pointer, size = c_void_p, c_int64
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "form": (ctypes.c_char_p, []),
        "has_8_bit": (c_int, []),
        "has_tiles": (c_int, []),
        "digest": (None, [pointer, size, size, pointer]),
        "fake_quantise": (size, [pointer, pointer, size, size, size, pointer]),
        "encode": (
            size,
            [pointer, pointer, size, size, size, c_int, pointer, pointer, pointer],
        ),
        "largest": (None, [pointer, size, size, size, pointer]),
        "fake_quantise_real": (None, [*[pointer] * 4, size, size, size, pointer]),
        "encode_real": (None, [*[pointer] * 4, size, size, size, c_int, pointer, pointer]),
        "pack": (None, [c_int, pointer, pointer, pointer, pointer]),
        "multiply": (None, [c_int, pointer, pointer, c_int, c_int, c_float, pointer]),
        "encode_multiply": (
            size,
            [*[pointer] * 2, size, c_int, c_int, *[pointer] * 2, c_int, c_int, c_float, pointer],
        ),
        "pack_stepped": (None, [pointer, pointer, pointer, pointer]),
        "multiply_stepped": (None, [pointer, pointer, pointer, c_int, c_float, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"axs6_{name}")
        function.restype, function.argtypes = result, arguments


def name_of(library: ctypes.CDLL) -> str:
    """Which of `NAMES` a library is."""
    return library.axs6_form().decode()


def chosen() -> ctypes.CDLL | None:
    """The library in use, or None.

    None without g++, or if the processor has no vectors of 256 bits.
    """
    return None if _State.form is None else _library(_State.form)


def library() -> ctypes.CDLL:
    """As `chosen`, but never None.

    Raises:
        RuntimeError: there is none.
    """
    found = chosen()
    if found is None:
        raise RuntimeError("there are no compiled kernels: axs6.torch.kernels.chosen() is None")
    return found


@cache
def _library(form: str) -> ctypes.CDLL | None:
    try:
        library = load(form)
    except CacheError as error:
        _log.warning("no compiled kernels: %s", error)
        return None
    except (ToolError, OSError) as error:
        _log.info("no compiled kernels: %s", error)
        return None
    return None if form == "native" and name_of(library) == "plain" else library


@contextmanager
def use(form: str | None) -> Iterator[None]:
    """A context that selects a form, or with None no library; for tests and comparisons.

    Raises:
        ValueError: the form is unknown.
    """
    if form is not None and form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)} or None, not {form!r}")
    before, _State.form = _State.form, form
    try:
        yield
    finally:
        _State.form = before


def digest(address: int, size: int, threads: int = 1) -> bytes:
    """A digest of all bytes from an address on; it depends on their order.

    A change of one aligned word of 64 bits always changes it; a change of several words goes
    unnoticed about once in 2^64. It is fast, but not cryptographic.

    Args:
        address: of the first byte.
        size: how many bytes there are.
        threads: threads that share the work.

    Returns:
        256 bytes for each MiB that has begun: the same for every form of the kernels.
    """
    found = ctypes.create_string_buffer(8 * WORDS * -(-size // PART))
    library().axs6_digest(address, size, threads, found)
    return found.raw
