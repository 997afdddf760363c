// Rows of bytes turned into vectors of one byte of many rows, and those into vectors of one bit.
#pragma once
#include <utility>
#include "bits.hpp"

typedef unsigned __int128 Sixteen __attribute__((aligned(1), may_alias));
typedef unsigned __int128 Sixteens __attribute__((vector_size(BYTES)));

// Copy l is in byte l ^ MIRROR of the vectors that become bits.
#if defined(__AVX512VBMI__) && defined(__GFNI__)
constexpr int MIRROR = 7;
#else
constexpr int MIRROR = 0;
#endif
template <int... I> INLINE Bytes mirrored(Bytes x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (I ^ MIRROR)...);
}

// 16 bytes from each of BYTES / 16 rows, 16 rows apart, in one vector; and back.
template <class At, int... I> INLINE Bytes collect(At at, int row, std::integer_sequence<int, I...>) {
  return (Bytes)Sixteens{*(const Sixteen*)at((row ^ MIRROR) + 16 * I)...};
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

// Byte l of x[g], l ^ MIRROR to become bits, is of copy g * BYTES + l. Bit b of all of them goes to
// signal[b]; and back.
#if defined(__AVX512VBMI__) && defined(__GFNI__)

// A vector has 8 words of 8 bytes. Bit b of byte 7 - i of a word becomes bit i of its byte b.
INLINE __m512i turn_bits(__m512i x) {
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(0x8040201008040201), x, 0);
}
// Half of the bytes of each word of two vectors: those of one number from both together; and back.
template <int HALF, int... I> INLINE __m512i halves(__m512i x, __m512i y, std::integer_sequence<int, I...>) {
  constexpr Bytes from{(I / 8 % 2 * BYTES + I % 8 * 8 + I / 16 + HALF * 4)...};
  return _mm512_permutex2var_epi8(x, (__m512i)from, y);
}
template <int HALF, int... I> INLINE __m512i wholes(__m512i x, __m512i y, std::integer_sequence<int, I...>) {
  constexpr Bytes from{(I % 8 / 4 * BYTES + I % 4 * 16 + HALF * 8 + I / 8)...};
  return _mm512_permutex2var_epi8(x, (__m512i)from, y);
}
// The quarters of 4 vectors and the vectors change places.
INLINE void turn_quarters(__m512i* x) {
  __m512i y[4];
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    y[i] = _mm512_shuffle_i64x2(x[2 * i], x[2 * i + 1], 0x44);
    y[i + 2] = _mm512_shuffle_i64x2(x[2 * i], x[2 * i + 1], 0xEE);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    x[2 * i] = _mm512_shuffle_i64x2(y[2 * i], y[2 * i + 1], 0x88);
    x[2 * i + 1] = _mm512_shuffle_i64x2(y[2 * i], y[2 * i + 1], 0xDD);
  }
}
INLINE void bits_of_bytes(const Bytes* x, V* signal) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  __m512i y[8];
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++) {
    __m512i even = turn_bits((__m512i)x[2 * g]), odd = turn_bits((__m512i)x[2 * g + 1]);
    y[g] = halves<0>(even, odd, every), y[g + 4] = halves<1>(even, odd, every);
  }
  turn_quarters(y), turn_quarters(y + 4);
#pragma GCC unroll 8
  for (int b = 0; b < 8; b++) signal[b] = (V)y[b];
}
INLINE void bytes_of_bits(const V* signal, Bytes* x) {
  constexpr auto every = std::make_integer_sequence<int, BYTES>{};
  __m512i y[8];
#pragma GCC unroll 8
  for (int b = 0; b < 8; b++) y[b] = (__m512i)signal[7 - b];
  turn_quarters(y), turn_quarters(y + 4);
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++) {
    x[2 * g] = (Bytes)turn_bits(wholes<0>(y[g], y[g + 4], every));
    x[2 * g + 1] = (Bytes)turn_bits(wholes<1>(y[g], y[g + 4], every));
  }
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
