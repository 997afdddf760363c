// Rows of bytes turned into vectors of one byte of many rows, and those into vectors of one bit.
#pragma once
#include <utility>
#include "bits.hpp"

typedef unsigned __int128 Sixteen __attribute__((aligned(1), may_alias));
typedef unsigned __int128 Sixteens __attribute__((vector_size(BYTES)));

// 16 bytes from each of BYTES / 16 rows, 16 rows apart, in one vector; and back.
template <class At, int... I> INLINE Bytes collect(At at, int row, std::integer_sequence<int, I...>) {
  return (Bytes)Sixteens{*(const Sixteen*)at(row + 16 * I)...};
}
template <class At> INLINE void spread(const Bytes& x, At at, int row) {
  for (int c = 0; c < BYTES / 16; c++) memcpy(at(row + 16 * c), (const uint8_t*)&x + 16 * c, 16);
}

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

// Byte l of x[g] is of copy g * BYTES + l. Bit b of all of them goes to signal[b]; and back.
#if defined(__AVX512VBMI__) && defined(__GFNI__)

// A vector has 8 words of 8 bytes of 8 bits. Of each word, the bytes and the bits change places.
INLINE __m512i turn_bits(__m512i x) {
  const __m512i diagonal = _mm512_set1_epi64(0x8040201008040201);
  __m512i mirrored = _mm512_gf2p8affine_epi64_epi8(diagonal, x, 0);
  return _mm512_gf2p8affine_epi64_epi8(mirrored, diagonal, 0);
}
// The words and the bytes change places.
template <int... I> INLINE Bytes turn_bytes(Bytes x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (I % 8 * 8 + I / 8)...);
}
// The vectors and the words change places.
INLINE void turn_words(__m512i* x) {
  __m512i y[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    y[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    int k = i % 2 + i / 2 * 4;
    x[k] = _mm512_shuffle_i64x2(y[k], y[k + 2], 0x88);
    x[k + 2] = _mm512_shuffle_i64x2(y[k], y[k + 2], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    y[i] = _mm512_shuffle_i64x2(x[i], x[i + 4], 0x88);
    y[i + 4] = _mm512_shuffle_i64x2(x[i], x[i + 4], 0xDD);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) x[i] = y[i];
}
INLINE void bits_of_bytes(const Bytes* x, V* signal) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  __m512i y[8];
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) y[g] = (__m512i)turn_bytes((Bytes)turn_bits((__m512i)x[g]), every);
  turn_words(y);
#pragma GCC unroll 8
  for (int b = 0; b < 8; b++) signal[b] = (V)y[b];
}
INLINE void bytes_of_bits(const V* signal, Bytes* x) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  __m512i y[8];
#pragma GCC unroll 8
  for (int b = 0; b < 8; b++) y[b] = (__m512i)signal[b];
  turn_words(y);
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) x[g] = (Bytes)turn_bits((__m512i)turn_bytes((Bytes)y[g], every));
}

#else

INLINE void bits_of_bytes(const Bytes* x, V* signal) {
  for (int g = 0; g < 8; g++)
#pragma GCC unroll 8
    for (int b = 0; b < 8; b++) {
      Mask bits = bit_of(x[g], b);
      memcpy((Mask*)&signal[b] + g, &bits, sizeof bits);
    }
}
INLINE void bytes_of_bits(const V* signal, Bytes* x) {
  for (int g = 0; g < 8; g++) {
    x[g] = Bytes{};
#pragma GCC unroll 8
    for (int b = 0; b < 8; b++) {
      Mask bits;
      memcpy(&bits, (const Mask*)&signal[b] + g, sizeof bits);
      x[g] = with_bit(x[g], bits, b);
    }
  }
}

#endif
