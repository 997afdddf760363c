// Fields of many items, moved between arrays and signals: copy l has the item in row l.
//
// A row is taken apart into bytes, and those into bits, which go to the signals, or come from them.
// Of all rows a few bytes are moved together, as many as stay in the nearest cache.
#pragma once
#include "transpose.hpp"

// A row of an array for each copy.
struct Rows {
  const int64_t* row;  // row[l] is that of copy l; null where it is first + l
  int64_t first;
  int copies;     // a multiple of BYTES; those from this one on are left out
  int64_t ahead;  // rows from these on that come next, where they follow one another

  int64_t of(int copy) const { return row ? row[copy] : first + copy; }
};

// Rows for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[COPIES];
  Rows rows;
  Chosen(const int32_t* index, const Rows& items) : rows(items) {
    if (!index) return;
    for (int l = 0; l < items.copies; l++) buffer[l] = index[items.of(l)];
    rows = {buffer, 0, items.copies, 0};
  }
};

// Bytes of a row that are taken apart together. Where 16 do not divide a row, its last 16 bytes
// come with some of those before them once more.
constexpr int together(int row) { return row >= 16 ? 16 : row & -row; }

// Where in an array the bytes of BYTES copies begin, those from `copy` on.
template <int ROW, bool CONSECUTIVE> struct Places {
  uint8_t* base;
  const int64_t* row;
  Places(const void* array, const Rows& rows, int copy)
      : base((uint8_t*)array + (CONSECUTIVE ? (rows.first + copy) * ROW : 0)), row(rows.row + copy) {}
  Places behind(int bytes) const {
    Places found = *this;
    found.base += bytes;
    return found;
  }
  uint8_t* operator()(int l) const { return base + (CONSECUTIVE ? l : row[l]) * ROW; }
};

// Vector j of x is byte j at all the places, those to become bits mirrored.
template <int ROW, bool CONSECUTIVE> INLINE void gather(Bytes* x, const Places<ROW, CONSECUTIVE>& at) {
  constexpr int N = together(ROW);
  constexpr auto every = std::make_integer_sequence<int, BYTES / 16>{};
  if constexpr (N == 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) x[i] = collect(at, i, every);
    transpose(x);
  } else {
    if (ROW == N && CONSECUTIVE) memcpy(x, at(0), N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy((uint8_t*)x + l * N, at(l), N);
    separate<N>(x);
    for (int j = 0; j < N; j++) x[j] = mirrored(x[j], std::make_integer_sequence<int, BYTES>{});
  }
}
template <int ROW, bool CONSECUTIVE> INLINE void scatter(Bytes* x, const Places<ROW, CONSECUTIVE>& at) {
  constexpr int N = together(ROW);
  if constexpr (N == 16) {
    transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) spread(x[i], at, i);
  } else {
    interleave<N>(x);
    if (ROW == N && CONSECUTIVE) memcpy(at(0), x, N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy(at(l), (const uint8_t*)x + l * N, N);
  }
}

// Brings bytes into the second cache: the nearest one is full of the rows of this step. It is inline,
// for g++ drops calls of functions that do nothing else.
INLINE void fetch(const uint8_t* start, const uint8_t* end) {
  for (; start < end; start += 64) __builtin_prefetch(start, 0, 2);
}

// Bytes of an array that are loaded for the next step. Each part of this one fetches its share of
// them: memory answers only a few requests at a time.
struct Ahead {
  const uint8_t* start;
  int64_t size;
};
template <int FIELDS> INLINE void fetch(const Ahead (&ahead)[FIELDS], int part, int parts) {
  for (const Ahead& each : ahead)
    fetch(each.start + each.size * part / parts, each.start + each.size * (part + 1) / parts);
}

// Elements of BITS bits in an array, of which the field has WIDTH, COUNT to a row.
template <int BITS, int WIDTH, int COUNT, bool SIGNED> struct Field {
  static constexpr int SIZE = BITS / 8, ROW = COUNT * SIZE, N = together(ROW);
  static constexpr int TILE = N < 16 || ROW == 16 ? N : 32;  // bytes of a row that are moved together

  // The first of N bytes, k bytes on, that are moved together.
  static constexpr int first(int k) { return k + N <= ROW ? k : ROW - N; }
  // The bits of the field in a byte of an element, and the signal of the first.
  static constexpr int used(int byte) { return WIDTH <= 8 * byte ? 0 : WIDTH - 8 * byte < 8 ? WIDTH - 8 * byte : 8; }
  static constexpr int low(int byte) { return byte / SIZE * WIDTH + 8 * (byte % SIZE); }

  // Bits of elements beyond their width are gathered in `beyond`. Returns the bytes that come next,
  // where rows follow one another.
  static Ahead load(V* signal, const void* array, const Rows& rows, V& beyond) {
    (rows.row ? load_rows<false> : load_rows<true>)(signal, array, rows, beyond);
    if (rows.row) return {};
    return {(const uint8_t*)array + (rows.first + rows.ahead) * ROW, rows.copies * ROW};
  }
  template <bool CONSECUTIVE>
  static void load_rows(V* signal, const void* array, const Rows& rows, V& beyond) {
    V rest = beyond;
    for (int tile = 0; tile < ROW; tile += TILE) {
      Bytes x[TILE][8];
      if (rows.copies < COPIES) memset(x, 0, sizeof x);
      for (int group = 0; group < rows.copies / BYTES; group++) {
        Places<ROW, CONSECUTIVE> at(array, rows, group * BYTES);
        for (int k = 0; k < TILE; k += N) {
          Bytes y[N];
          gather(y, at.behind(first(tile + k)));
#pragma GCC unroll 16
          for (int j = 0; j < N; j++) x[k + j][group] = y[j];
        }
      }
      for (int k = 0; k < TILE; k += N)
#pragma GCC unroll 16
        for (int j = 0; j < N; j++) {
          V bits[8];
          bits_of_bytes(x[k + j], bits);
#pragma GCC unroll 8
          for (int b = 0; b < 8; b++)
            if (b < used(j % SIZE)) signal[low(first(tile + k)) + low(j) + b] = bits[b];
            else rest |= bits[b];
        }
    }
    beyond = rest;
  }

  static void store(const V* signal, void* array, const Rows& rows) {
    (rows.row ? store_rows<false> : store_rows<true>)(signal, array, rows);
  }
  template <bool CONSECUTIVE> static void store_rows(const V* signal, void* array, const Rows& rows) {
    for (int tile = 0; tile < ROW; tile += TILE) {
      Bytes x[TILE][8];
      for (int k = 0; k < TILE; k += N)
#pragma GCC unroll 16
        for (int j = 0; j < N; j++) {
          const V* element = signal + low(first(tile + k)) + low(j) - 8 * (j % SIZE);
          V bits[8];
#pragma GCC unroll 8
          for (int b = 0; b < 8; b++) {
            int place = 8 * (j % SIZE) + b;
            bits[b] = place < WIDTH ? element[place] : SIGNED ? element[WIDTH - 1] : ZERO;
          }
          bytes_of_bits(bits, x[k + j]);
        }
      for (int group = 0; group < rows.copies / BYTES; group++) {
        Places<ROW, CONSECUTIVE> at(array, rows, group * BYTES);
        const uint8_t* next = at.base + rows.ahead * ROW + BYTES * tile;  // all rows, over the tiles
        if (CONSECUTIVE) fetch(next, next + BYTES * TILE);
        for (int k = 0; k < TILE; k += N) {
          Bytes y[N];
#pragma GCC unroll 16
          for (int j = 0; j < N; j++) y[j] = x[k + j][group];
          scatter(y, at.behind(first(tile + k)));
        }
      }
    }
  }
};
