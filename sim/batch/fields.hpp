// Fields of many items, moved between arrays and signals: copy l has the item in row l.
//
// A row is taken apart into bytes, 16 rows by 16 bytes at a time: byte k of BYTES rows stands in one
// vector, whose bits then go to the signals, or come from them.
#pragma once
#include <utility>
#include "bits.hpp"

// A row of an array for each copy.
struct Rows {
  const int64_t* row;
  bool consecutive;  // row[l] is row[0] + l
  int copies;        // a multiple of BYTES; those from this one on are left out
};

// Rows for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[COPIES];
  Rows rows;
  Chosen(const int32_t* index, const Rows& items) : rows(items) {
    if (!index) return;
    for (int l = 0; l < items.copies; l++) buffer[l] = index[items.row[l]];
    rows = {buffer, false, items.copies};
  }
};

template <int SIZE> struct Pack { typedef uint8_t type __attribute__((vector_size(SIZE))); };

// Transposes squares of 16 x 16 bytes, side by side in 16 vectors, in rounds of interleaving the two
// halves of the vectors.
template <int HALF, int... I> INLINE Bytes interleaved(Bytes x, Bytes y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, (I % 2 * BYTES + I / 16 * 16 + HALF * 8 + I % 16 / 2)...);
}
INLINE void transpose(Bytes* x) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
    Bytes y[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      y[2 * i] = interleaved<0>(x[i], x[i + 8], every);
      y[2 * i + 1] = interleaved<1>(x[i], x[i + 8], every);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) x[i] = y[i];
  }
}

// 16 bytes from each of SIZE / 16 rows, 16 rows apart, in one vector; and back.
template <class Half, int... I> INLINE auto joined(Half x, Half y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, I...);
}
template <int SIZE> INLINE auto collect(const uint8_t* base, const int64_t* row, int64_t width) {
  if constexpr (SIZE == 16) {
    typename Pack<16>::type x;
    memcpy(&x, base + row[0] * width, sizeof x);
    return x;
  } else {
    auto low = collect<SIZE / 2>(base, row, width), high = collect<SIZE / 2>(base, row + SIZE / 2, width);
    return joined(low, high, std::make_integer_sequence<int, SIZE>{});
  }
}
INLINE void spread(const Bytes& x, uint8_t* base, const int64_t* row, int64_t width) {
  for (int c = 0; c < BYTES / 16; c++) memcpy(base + row[16 * c] * width, (const uint8_t*)&x + 16 * c, 16);
}

// N vectors whose bytes take turns, N a power of two, taken apart; and back.
template <int... I> INLINE Bytes evens(Bytes x, Bytes y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, (2 * I)...);
}
template <int... I> INLINE Bytes odds(Bytes x, Bytes y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, (2 * I + 1)...);
}
template <int HALF, int... I> INLINE Bytes zipped(Bytes x, Bytes y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, (HALF * BYTES / 2 + I / 2 + I % 2 * BYTES)...);
}
template <int N> INLINE void separate(Bytes* x) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  if constexpr (N > 1) {
    Bytes y[N];
    for (int i = 0; i < N / 2; i++) {
      y[i] = evens(x[2 * i], x[2 * i + 1], every);
      y[i + N / 2] = odds(x[2 * i], x[2 * i + 1], every);
    }
    separate<N / 2>(y), separate<N / 2>(y + N / 2);
    for (int i = 0; i < N; i++) x[i] = y[i % 2 * (N / 2) + i / 2];
  }
}
template <int N> INLINE void interleave(Bytes* x) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  if constexpr (N > 1) {
    Bytes y[N];
    for (int i = 0; i < N; i++) y[i % 2 * (N / 2) + i / 2] = x[i];
    interleave<N / 2>(y), interleave<N / 2>(y + N / 2);
    for (int i = 0; i < N / 2; i++) {
      x[2 * i] = zipped<0>(y[i], y[i + N / 2], every);
      x[2 * i + 1] = zipped<1>(y[i], y[i + N / 2], every);
    }
  }
}

// Bytes of a row that are taken apart together. Where 16 do not divide a row, its last 16 bytes
// come with some of those before them once more.
constexpr int together(int row) { return row >= 16 ? 16 : row & -row; }

// Byte j of x is byte `first` + j of each of BYTES rows.
template <int ROW> INLINE void gather(Bytes* x, const uint8_t* base, const int64_t* row, bool consecutive) {
  constexpr int N = together(ROW);
  if constexpr (N == 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) x[i] = collect<BYTES>(base, row + i, ROW);
    transpose(x);
  } else {
    if (ROW == N && consecutive) memcpy(x, base + row[0] * ROW, N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy((uint8_t*)x + l * N, base + row[l] * ROW, N);
    separate<N>(x);
  }
}
template <int ROW> INLINE void scatter(Bytes* x, uint8_t* base, const int64_t* row, bool consecutive) {
  constexpr int N = together(ROW);
  if constexpr (N == 16) {
    transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) spread(x[i], base, row + i, ROW);
  } else {
    interleave<N>(x);
    if (ROW == N && consecutive) memcpy(base + row[0] * ROW, x, N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy(base + row[l] * ROW, (const uint8_t*)x + l * N, N);
  }
}

// Elements of BITS bits in an array, of which the field has WIDTH, COUNT to a row.
template <int BITS, int WIDTH, int COUNT, bool SIGNED> struct Field {
  static constexpr int SIZE = BITS / 8, ROW = COUNT * SIZE, N = together(ROW);

  // The bits of the field in byte `k` of an element.
  static constexpr int used(int k) { return WIDTH <= 8 * k ? 0 : WIDTH - 8 * k < 8 ? WIDTH - 8 * k : 8; }

  // Bits of elements beyond their width are gathered in `beyond`.
  static void load(V* signal, const void* array, const Rows& rows, Bytes& beyond) {
    Bytes rest = beyond;
    for (int group = 0; group < rows.copies / BYTES; group++) {
      const int64_t* row = rows.row + group * BYTES;
      if (rows.consecutive)  // some that come next
        for (int k = 0; k < BYTES * ROW; k += 64)
          __builtin_prefetch((const uint8_t*)array + (row[0] + 2 * BYTES) * ROW + k);
      for (int k = 0; k < ROW; k += N) {
        int first = k + N <= ROW ? k : ROW - N;
        Bytes x[N];
        gather<ROW>(x, (const uint8_t*)array + first, row, rows.consecutive);
#pragma GCC unroll 16
        for (int j = 0; j < N; j++) {
          int byte = j % SIZE, low = (first / SIZE + j / SIZE) * WIDTH + 8 * byte;
#pragma GCC unroll 8
          for (int b = 0; b < 8; b++) {
            if (b >= used(byte)) continue;
            Mask bits = bit_of(x[j], b);
            memcpy((Mask*)&signal[low + b] + group, &bits, sizeof bits);
          }
          rest |= x[j] & (uint8_t)~((1 << used(byte)) - 1);
        }
      }
    }
    beyond = rest;
  }

  static void store(const V* signal, void* array, const Rows& rows) {
    for (int group = 0; group < rows.copies / BYTES; group++) {
      const int64_t* row = rows.row + group * BYTES;
      for (int k = 0; k < ROW; k += N) {
        int first = k + N <= ROW ? k : ROW - N;
        Bytes x[N];
#pragma GCC unroll 16
        for (int j = 0; j < N; j++) {
          int byte = j % SIZE, low = (first / SIZE + j / SIZE) * WIDTH;
          x[j] = Bytes{};
#pragma GCC unroll 8
          for (int b = 0; b < 8; b++) {
            if (!SIGNED && b >= used(byte)) continue;
            int place = 8 * byte + b;
            Mask bits;
            memcpy(&bits, (const Mask*)&signal[low + (place < WIDTH ? place : WIDTH - 1)] + group, sizeof bits);
            x[j] = with_bit(x[j], bits, b);
          }
        }
        scatter<ROW>(x, (uint8_t*)array + first, row, rows.consecutive);
      }
    }
  }
};
