// Fields of many items, moved between arrays and signals: element l of a signal is row l's.
#pragma once
#include "vectors.hpp"

// Transposes squares of N elements, CHUNKS of them side by side in N vectors, in log2(N) rounds of
// interleaving the two halves of the vectors.
template <int N, class Vector, int... I> INLINE Vector low_halves(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * COUNT + I / N * N + I % N / 2)...);
}
template <int N, class Vector, int... I> INLINE Vector high_halves(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * COUNT + I / N * N + N / 2 + I % N / 2)...);
}
template <int N, int CHUNKS, class Vector> INLINE void transpose(Vector* x) {
  constexpr auto all = std::make_integer_sequence<int, N * CHUNKS>{};
  for (int round = 1; round < N; round *= 2) {
    Vector y[N];
    for (int i = 0; i < N / 2; i++) {
      y[2 * i] = low_halves<N>(x[i], x[i + N / 2], all);
      y[2 * i + 1] = high_halves<N>(x[i], x[i + N / 2], all);
    }
    memcpy(x, y, sizeof y);
  }
}

// Rows and elements that are transposed together: a power of two that divides COUNT. Where they fill
// 128 bits, all squares of a register are transposed at once.
template <int BITS, int COUNT> constexpr int TILE = 128 / BITS < (COUNT & -COUNT) ? 128 / BITS : COUNT & -COUNT;
template <int BITS, int COUNT> constexpr int SQUARES = TILE<BITS, COUNT> == 128 / BITS ? LANES / 16 : 1;

// The COUNT elements of a register from FIRST on, and two halves as one register.
template <int FIRST, class Vector, int... I>
INLINE auto slice(Vector x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (FIRST + I)...);
}
template <class Vector, int... I>
INLINE auto join(Vector x, Vector y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, I...);
}

// N elements from each of CHUNKS rows, N rows apart, in one register; and back.
template <int BITS, int N, int CHUNKS>
INLINE auto collect(const U<BITS>* base, const int64_t* row, int64_t width) {
  if constexpr (CHUNKS == 1) {
    typename Pack<U<BITS>, N>::type x;
    memcpy(&x, base + row[0] * width, sizeof x);
    return x;
  } else {
    auto low = collect<BITS, N, CHUNKS / 2>(base, row, width);
    auto high = collect<BITS, N, CHUNKS / 2>(base, row + N * CHUNKS / 2, width);
    return join(low, high, std::make_integer_sequence<int, N * CHUNKS>{});
  }
}
template <int BITS, int N, int CHUNKS, class Vector>
INLINE void spread(Vector x, U<BITS>* base, const int64_t* row, int64_t width) {
  if constexpr (CHUNKS == 1) {
    memcpy(base + row[0] * width, &x, sizeof x);
  } else {
    constexpr int HALF = N * CHUNKS / 2;
    constexpr auto few = std::make_integer_sequence<int, HALF>{};
    spread<BITS, N, CHUNKS / 2>(slice<0>(x, few), base, row, width);
    spread<BITS, N, CHUNKS / 2>(slice<HALF>(x, few), base, row + HALF, width);
  }
}

// Rows of an array for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[LANES];
  const int64_t* row;
  Chosen(const int32_t* index, const int64_t* item) : row(index ? buffer : item) {
    if (index)
      for (int l = 0; l < LANES; l++) buffer[l] = index[item[l]];
  }
};

// Rows for the copies in the order in which their elements lie in a V<BITS>.
template <int BITS> struct Ordered {
  int64_t row[LANES];
  Ordered(const int64_t* rows) {
    for (int q = 0; q < LANES; q++) row[q] = rows[lane(BITS, q)];
  }
};
template <> struct Ordered<8> {
  const int64_t* row;
  Ordered(const int64_t* rows) : row(rows) {}
};

// Copy l's element of signal[j] is element j of row l of an array with COUNT elements a row.
template <int BITS, int COUNT>
INLINE void load_field(V<BITS>* signal, const void* array, const int64_t* rows) {
  auto base = (const U<BITS>*)array;
  Ordered<BITS> ordered(rows);
  auto row = ordered.row;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> gathered[LANES];
      for (int l = 0; l < LANES; l++) gathered[l] = base[row[l] * COUNT + j];
      memcpy(&signal[j], gathered, sizeof gathered);
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>, CHUNKS = SQUARES<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N * CHUNKS>::type;
    for (int l = 0; l < LANES; l += N * CHUNKS)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) x[i] = collect<BITS, N, CHUNKS>(base + j, row + l + i, COUNT);
        transpose<N, CHUNKS>(x);
        for (int i = 0; i < N; i++) memcpy((U<BITS>*)&signal[j + i] + l, &x[i], sizeof(Vector));
      }
  }
}

template <int BITS, int COUNT>
INLINE void store_field(const V<BITS>* signal, void* array, const int64_t* rows) {
  auto base = (U<BITS>*)array;
  Ordered<BITS> ordered(rows);
  auto row = ordered.row;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> scattered[LANES];
      memcpy(scattered, &signal[j], sizeof scattered);
      for (int l = 0; l < LANES; l++) base[row[l] * COUNT + j] = scattered[l];
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>, CHUNKS = SQUARES<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N * CHUNKS>::type;
    for (int l = 0; l < LANES; l += N * CHUNKS)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) memcpy(&x[i], (const U<BITS>*)&signal[j + i] + l, sizeof(Vector));
        transpose<N, CHUNKS>(x);
        for (int i = 0; i < N; i++) spread<BITS, N, CHUNKS>(x[i], base + j, row + l + i, COUNT);
      }
  }
}
