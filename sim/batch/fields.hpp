// Fields of many items, moved between arrays and signals: element l of a signal is row l's.
#pragma once
#include "vectors.hpp"

// Transposes N rows of N elements, in log2(N) rounds of interleaving the two halves.
template <class Vector, int... I> INLINE Vector low_half(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int N = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * N + I / 2)...);
}
template <class Vector, int... I> INLINE Vector high_half(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int N = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * N + N / 2 + I / 2)...);
}
template <int N, class Vector> INLINE void transpose(Vector* x) {
  for (int round = 1; round < N; round *= 2) {
    Vector y[N];
    for (int i = 0; i < N / 2; i++) {
      y[2 * i] = low_half(x[i], x[i + N / 2], std::make_integer_sequence<int, N>{});
      y[2 * i + 1] = high_half(x[i], x[i + N / 2], std::make_integer_sequence<int, N>{});
    }
    memcpy(x, y, sizeof y);
  }
}

// Rows and elements that are transposed together: a power of two that divides COUNT.
template <int BITS, int COUNT> constexpr int TILE = 128 / BITS < (COUNT & -COUNT) ? 128 / BITS : COUNT & -COUNT;

// Rows of an array for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[LANES];
  const int64_t* row;
  Chosen(const int32_t* index, const int64_t* item) : row(index ? buffer : item) {
    if (index)
      for (int l = 0; l < LANES; l++) buffer[l] = index[item[l]];
  }
};

// Element l of signal[j] is element j of row[l] of an array with COUNT elements a row.
template <int BITS, int COUNT>
INLINE void load_field(V<BITS>* signal, const void* array, const int64_t* row) {
  auto base = (const U<BITS>*)array;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> gathered[LANES];
      for (int l = 0; l < LANES; l++) gathered[l] = base[row[l] * COUNT + j];
      memcpy(&signal[j], gathered, sizeof gathered);
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N>::type;
    for (int l = 0; l < LANES; l += N)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) memcpy(&x[i], base + row[l + i] * COUNT + j, sizeof(Vector));
        transpose<N>(x);
        for (int i = 0; i < N; i++) memcpy((U<BITS>*)&signal[j + i] + l, &x[i], sizeof(Vector));
      }
  }
}

template <int BITS, int COUNT>
INLINE void store_field(const V<BITS>* signal, void* array, const int64_t* row) {
  auto base = (U<BITS>*)array;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> scattered[LANES];
      memcpy(scattered, &signal[j], sizeof scattered);
      for (int l = 0; l < LANES; l++) base[row[l] * COUNT + j] = scattered[l];
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N>::type;
    for (int l = 0; l < LANES; l += N)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) memcpy(&x[i], (const U<BITS>*)&signal[j + i] + l, sizeof(Vector));
        transpose<N>(x);
        for (int i = 0; i < N; i++) memcpy(base + row[l + i] * COUNT + j, &x[i], sizeof(Vector));
      }
  }
}
