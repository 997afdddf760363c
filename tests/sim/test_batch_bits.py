"""The C++ runtime of the batch simulator against NumPy, in four instruction sets."""

import ctypes
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from axs6.sim.batch.model import runtime

FORMS = {
    "native": ["-march=native"],
    "AVX-512 without GFNI": ["-march=native", "-mno-gfni"],
    "AVX2": ["-march=native", "-mno-avx512f"],
    "SSE2": ["-march=native", "-mno-avx"],
}
FIELDS = [  # bits of an element, width, elements to a row, signed
    (8, 1, 1, False),
    (8, 6, 8, True),
    (8, 6, 32, False),
    (8, 8, 21, False),
    (16, 9, 1, False),
    (16, 15, 3, True),
    (16, 16, 8, True),
    (32, 17, 5, True),
    (32, 32, 4, False),
    (64, 33, 1, True),
    (64, 60, 2, False),
]
"""One for each way in which rows are taken apart, with and without rests, of each size."""

HEAD = """
#include "fields.hpp"
template <int... T> void all_tables(V a, V b, V c, V* found, std::integer_sequence<int, T...>) {
  ((found[T] = look_up<T>(a, b, c)), ...);
}
extern "C" {
int copies() { return COPIES; }
void tables(const uint8_t* bits, uint8_t* found) {
  V in[3], out[256];
  for (int k = 0; k < 3; k++) in[k] = from_bytes(bits + k * COPIES);
  all_tables(in[0], in[1], in[2], out, std::make_integer_sequence<int, 256>{});
  for (int t = 0; t < 256; t++) to_bytes(out[t], found + t * COPIES);
}
int truths(const uint8_t* bits, int copy) {
  V x = from_bytes(bits);
  return any(x) | all(x) << 1 | holds(x, copy) << 2;
}
"""
MOVE = """bool move{number}(const void* from, void* to, const int64_t* row, bool consecutive,
                         int copies, uint8_t* bits) {{
  static V signal[{width} * {count}];
  V beyond{{}};
  Rows rows{{consecutive ? nullptr : row, row[0], copies, 0}};
  {field}::load(signal, from, rows, beyond);
  {field}::store(signal, to, rows);
  for (int k = 0; k < {width} * {count}; k++) to_bytes(signal[k], bits + k * COPIES);
  return any(beyond);
}}"""


def source() -> str:
    moves = []
    for number, (bits, width, count, signed) in enumerate(FIELDS):
        field = f"Field<{bits}, {width}, {count}, {str(signed).lower()}>"
        moves.append(MOVE.format(number=number, width=width, count=count, field=field))
    return "\n".join([HEAD, *moves, "}"])


@pytest.fixture(scope="module", params=FORMS)
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("bits")
    for name, text in {**runtime(), "bits.cpp": source()}.items():
        (folder / name).write_text(text)
    command = ["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC", *FORMS[request.param]]
    subprocess.run([*command, "-o", "bits.so", "bits.cpp"], cwd=folder, check=True, timeout=120)
    return ctypes.CDLL(str(folder / "bits.so"))


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_every_table_of_three_bits(library: ctypes.CDLL) -> None:
    copies = library.copies()
    bits = np.random.default_rng(1).integers(0, 2, (3, copies), np.uint8)
    bits[:, :8] = np.array(list(product((0, 1), repeat=3))).T
    found = np.zeros((256, copies), np.uint8)
    library.tables(pointer(bits), pointer(found))
    row = bits[0] << 2 | bits[1] << 1 | bits[2]
    np.testing.assert_array_equal(found, np.arange(256)[:, None] >> row & 1)


def test_whether_some_copies_hold(library: ctypes.CDLL) -> None:
    copies = library.copies()
    bits = np.zeros(copies, np.uint8)
    assert library.truths(pointer(bits), 0) == 0
    for copy in (0, 1, 8, copies // 2 + 3, copies - 1):
        bits[:] = 0
        bits[copy] = 1
        assert library.truths(pointer(bits), copy) == 0b101
        assert library.truths(pointer(1 - bits), copy) == 0b001
    assert library.truths(pointer(np.ones(copies, np.uint8)), 5) == 0b111


@pytest.mark.parametrize("number", range(len(FIELDS)))
@pytest.mark.parametrize("consecutive", [True, False])
@pytest.mark.parametrize("eighths", [8, 3])
def test_fields_become_bits_and_come_back(
    library: ctypes.CDLL, number: int, consecutive: bool, eighths: int
) -> None:
    bits, width, count, signed = FIELDS[number]
    copies = library.copies()
    used = copies * eighths // 8
    rng = np.random.default_rng(number)
    dtype = np.dtype(f"u{bits // 8}")
    values = rng.integers(0, (1 << width) - 1, (copies + 7, count), dtype, endpoint=True)
    row = 5 + (np.arange(copies) if consecutive else rng.permutation(copies))
    result = np.zeros_like(values)
    signals = np.zeros((count, width, copies), np.uint8)
    places = np.arange(width, dtype=dtype)[:, None]

    def move() -> bool:
        function = getattr(library, f"move{number}")
        function.restype = ctypes.c_bool
        arrays = pointer(values), pointer(result), pointer(row)
        return bool(function(*arrays, consecutive, used, pointer(signals)))

    assert not move()
    expected = np.zeros_like(values)
    expected[row[:used]] = values[row[:used]]
    taken = expected[row].T[:, None]
    np.testing.assert_array_equal(signals, taken >> places & 1)
    if signed:
        sign = np.array(1 << (width - 1), dtype)
        expected = (expected ^ sign) - sign
        expected[np.setdiff1d(np.arange(copies + 7), row[:used])] = 0
    np.testing.assert_array_equal(result, expected)
    if width < bits:
        values[row[used // 3], count - 1] |= np.array(1 << width, dtype)
        assert move()
