// Fields of many items, moved between arrays and signals: copy l has the item in row l.
//
// A row is taken apart into bytes, and those into bits, which go to the signals, or come from them.
// Of all rows a few bytes are moved together, as many as stay in the nearest cache.
#pragma once
#include "transpose.hpp"

// A row of an array for each copy.
struct Rows {
  const int64_t* row;
  bool consecutive;  // row[l] is row[0] + l
  int copies;        // a multiple of BYTES; those from this one on are left out
  int64_t ahead;     // rows from these on that come next, where those are consecutive too
};

// Rows for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[COPIES];
  Rows rows;
  Chosen(const int32_t* index, const Rows& items) : rows(items) {
    if (!index) return;
    for (int l = 0; l < items.copies; l++) buffer[l] = index[items.row[l]];
    rows = {buffer, false, items.copies, 0};
  }
};

// Bytes of a row that are taken apart together. Where 16 do not divide a row, its last 16 bytes
// come with some of those before them once more.
constexpr int together(int row) { return row >= 16 ? 16 : row & -row; }

// Byte j of x is byte j behind `base` in each of BYTES rows.
template <int ROW, bool CONSECUTIVE> INLINE void gather(Bytes* x, const uint8_t* base, const int64_t* row) {
  constexpr int N = together(ROW);
  constexpr auto every = std::make_integer_sequence<int, BYTES / 16>{};
  const uint8_t* start = base + row[0] * ROW;
  if constexpr (N == 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
      x[i] = collect([=](int l) { return CONSECUTIVE ? start + l * ROW : base + row[l] * ROW; }, i, every);
    transpose(x);
  } else {
    if (ROW == N && CONSECUTIVE) memcpy(x, start, N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy((uint8_t*)x + l * N, base + row[l] * ROW, N);
    separate<N>(x);
  }
}
template <int ROW, bool CONSECUTIVE> INLINE void scatter(Bytes* x, uint8_t* base, const int64_t* row) {
  constexpr int N = together(ROW);
  uint8_t* start = base + row[0] * ROW;
  if constexpr (N == 16) {
    transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
      spread(x[i], [=](int l) { return CONSECUTIVE ? start + l * ROW : base + row[l] * ROW; }, i);
  } else {
    interleave<N>(x);
    if (ROW == N && CONSECUTIVE) memcpy(start, x, N * BYTES);
    else for (int l = 0; l < BYTES; l++) memcpy(base + row[l] * ROW, (const uint8_t*)x + l * N, N);
  }
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

  // Bits of elements beyond their width are gathered in `beyond`.
  static void load(V* signal, const void* array, const Rows& rows, V& beyond) {
    (rows.consecutive ? load_rows<true> : load_rows<false>)(signal, array, rows, beyond);
  }
  template <bool CONSECUTIVE>
  static void load_rows(V* signal, const void* array, const Rows& rows, V& beyond) {
    const uint8_t* base = (const uint8_t*)array;
    V rest = beyond;
    for (int tile = 0; tile < ROW; tile += TILE) {
      Bytes x[TILE][8];
      if (rows.copies < COPIES) memset(x, 0, sizeof x);
      for (int group = 0; group < rows.copies / BYTES; group++) {
        const int64_t* row = rows.row + group * BYTES;
        if (CONSECUTIVE)  // into the second cache: the nearest one is full of this step's rows
          for (int k = 0; k < BYTES * TILE; k += 64)
            __builtin_prefetch(base + (row[0] + rows.ahead) * ROW + BYTES * tile + k, 0, 2);
        for (int k = 0; k < TILE; k += N) {
          Bytes y[N];
          gather<ROW, CONSECUTIVE>(y, base + first(tile + k), row);
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
    (rows.consecutive ? store_rows<true> : store_rows<false>)(signal, array, rows);
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
      for (int group = 0; group < rows.copies / BYTES; group++)
        for (int k = 0; k < TILE; k += N) {
          Bytes y[N];
#pragma GCC unroll 16
          for (int j = 0; j < N; j++) y[j] = x[k + j][group];
          scatter<ROW, CONSECUTIVE>(y, (uint8_t*)array + first(tile + k), rows.row + group * BYTES);
        }
    }
  }
};
