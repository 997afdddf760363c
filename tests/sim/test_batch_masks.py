"""Each operation that makes or takes masks, against NumPy, in three instruction sets."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from axs6.sim.batch.model import runtime

FORMS = {
    "native": ["-march=native"],
    "AVX2": ["-march=native", "-mno-avx512f"],
    "SSE2": ["-march=native", "-mno-avx"],
}
MAKERS, TAKERS = ("eq", "lt", "slt", "test"), ("select", "where")
BITS = (8, 16, 32, 64)

HEAD = """
#include "masks.hpp"
template <class T> T get(const void* p) { T x; memcpy(&x, p, sizeof x); return x; }
extern "C" int lanes() { return LANES; }
extern "C" int place(int bits, int position) { return lane(bits, position); }
extern "C" uint64_t table(uint64_t a, uint64_t b, uint64_t c) {
  return mask(look_up<0x1B>(held(a), held(b), held(c)));
}
"""
MAKER = """extern "C" uint64_t {name}{bits}(void* x, void* y) {{
  return mask({name}(get<V<{bits}>>(x), get<V<{bits}>>(y)));
}}"""
TAKER = """extern "C" void {name}{bits}(uint64_t m, void* x, void* y) {{
  auto z = {call}; memcpy(y, &z, sizeof z);
}}"""


def source() -> str:
    lines = [HEAD]
    for bits in BITS:
        x, y = f"get<V<{bits}>>(x)", f"get<V<{bits}>>(y)"
        calls = {"select": f"select(held(m), {x}, {y})", "where": f"where(held(m), {x})"}
        lines += [MAKER.format(name=name, bits=bits) for name in MAKERS]
        lines += [TAKER.format(name=name, bits=bits, call=calls[name]) for name in TAKERS]
    return "\n".join(lines)


@pytest.fixture(scope="module", params=FORMS)
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("masks")
    for name, text in {**runtime(), "masks.cpp": source()}.items():
        (folder / name).write_text(text)
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *FORMS[request.param]]
    subprocess.run([*command, "-o", "masks.so", "masks.cpp"], cwd=folder, check=True, timeout=120)
    found = ctypes.CDLL(str(folder / "masks.so"))
    for name in ("table", *(f"{name}{bits}" for name in MAKERS for bits in BITS)):
        getattr(found, name).restype = ctypes.c_uint64
    return found


@pytest.mark.parametrize("bits", BITS)
def test_masks_and_elements(library: ctypes.CDLL, bits: int) -> None:
    lanes = library.lanes()
    rng = np.random.default_rng(bits)
    x, y = rng.integers(0, (1 << bits) - 1, (2, lanes), f"u{bits // 8}", endpoint=True)
    y[::3] = x[::3]
    x[::5] = 0
    order = [library.place(bits, position) for position in range(lanes)]
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (x, y)]
    signed = [each.view(f"i{bits // 8}") for each in (x, y)]
    expected = {"eq": x == y, "lt": x < y, "slt": signed[0] < signed[1], "test": (x & y) != 0}
    for name, truths in expected.items():
        found = getattr(library, f"{name}{bits}")(*pointers)
        assert found == sum(1 << order[i] for i in range(lanes) if truths[i]), name
    mask = int(rng.integers(0, 1 << 62)) & (1 << lanes) - 1
    chosen = np.array([mask >> copy & 1 for copy in order], bool)
    for name, values in {"select": np.where(chosen, y, x), "where": np.where(chosen, x, 0)}.items():
        result = y.copy()
        target = ctypes.c_void_p(result.ctypes.data)
        getattr(library, f"{name}{bits}")(ctypes.c_uint64(mask), pointers[0], target)
        np.testing.assert_array_equal(result, values)


def test_look_up_takes_the_row_that_three_masks_number(library: ctypes.CDLL) -> None:
    found = library.table(0xF0, 0xCC, 0xAA)
    assert found & 0xFF == 0x1B
