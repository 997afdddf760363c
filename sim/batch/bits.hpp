// Signals of one bit in many copies of a design: bit l of a V is the signal in copy l.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512BW__)
constexpr int BYTES = 64;
using Mask = uint64_t;
#elif defined(__AVX2__)
constexpr int BYTES = 32;
using Mask = uint32_t;
#else
constexpr int BYTES = 16;
using Mask = uint16_t;
#endif
constexpr int COPIES = 8 * BYTES;

typedef uint64_t V __attribute__((vector_size(BYTES)));
typedef uint8_t Bytes __attribute__((vector_size(BYTES)));

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

constexpr V ZERO = {};
constexpr V ONES = ~ZERO;

#if defined(__AVX512BW__)

// The bit of TABLE that each copy's three bits number, `a` the highest of them.
template <int TABLE> INLINE V look_up(V a, V b, V c) {
  return (V)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, TABLE);
}
INLINE bool any(V x) { return _mm512_test_epi64_mask((__m512i)x, (__m512i)x); }
INLINE Mask bit_of(Bytes x, int bit) { return _mm512_test_epi8_mask((__m512i)x, _mm512_set1_epi8(1 << bit)); }
INLINE Bytes with_bit(Bytes x, Mask bits, int bit) {
  return (Bytes)_mm512_mask_add_epi8((__m512i)x, bits, (__m512i)x, _mm512_set1_epi8(1 << bit));
}

#else

// A function of two bits, given as its table of four rows.
template <int TABLE> INLINE V look_up2(V a, V b) {
  if constexpr (TABLE >= 8 && TABLE != 8 && TABLE != 14) return ~look_up2<15 - TABLE>(a, b);
  else if constexpr (TABLE == 0) return ZERO;
  else if constexpr (TABLE == 1) return ~(a | b);
  else if constexpr (TABLE == 2) return ~a & b;
  else if constexpr (TABLE == 3) return ~a;
  else if constexpr (TABLE == 4) return a & ~b;
  else if constexpr (TABLE == 5) return ~b;
  else if constexpr (TABLE == 6) return a ^ b;
  else if constexpr (TABLE == 7) return ~(a & b);
  else if constexpr (TABLE == 8) return a & b;
  else return a | b;
}

// The table with its inputs turned, so that the second or the third comes first.
constexpr int turned(int table, int turns) {
  for (; turns; turns--) {
    int next = 0;
    for (int row = 0; row < 8; row++) next |= (table >> row & 1) << ((row << 1 | row >> 2) & 7);
    table = next;
  }
  return table;
}

// Operations that a table takes when it is split by its first input.
constexpr int cost(int table) {
  int low = table & 15, high = table >> 4;
  if (low == high) return 1;
  if (low == (high ^ 15)) return 2;
  return low == 0 || low == 15 || high == 0 || high == 15 ? 2 : 4;
}

template <int TABLE> INLINE V look_up(V a, V b, V c) {
  constexpr int second = turned(TABLE, 1), third = turned(TABLE, 2);
  if constexpr (cost(second) < cost(TABLE) && cost(second) <= cost(third)) return look_up<second>(b, c, a);
  else if constexpr (cost(third) < cost(TABLE)) return look_up<third>(c, a, b);
  else {
    constexpr int low = TABLE & 15, high = TABLE >> 4;
    if constexpr (low == high) return look_up2<low>(b, c);
    else if constexpr (low == (high ^ 15)) return a ^ look_up2<low>(b, c);
    else if constexpr (low == 0) return a & look_up2<high>(b, c);
    else if constexpr (low == 15) return ~a | look_up2<high>(b, c);
    else if constexpr (high == 0) return ~a & look_up2<low>(b, c);
    else if constexpr (high == 15) return a | look_up2<low>(b, c);
    else return look_up2<low>(b, c) ^ (a & look_up2<low ^ high>(b, c));
  }
}

INLINE bool any(V x) {
  uint64_t found = 0;
  for (int i = 0; i < BYTES / 8; i++) found |= x[i];
  return found;
}

// Bit `bit` of each byte.
INLINE Mask bit_of(Bytes x, int bit) {
#if defined(__AVX2__)
  return _mm256_movemask_epi8(_mm256_slli_epi16((__m256i)x, 7 - bit));
#else
  uint64_t words[BYTES / 8];
  memcpy(words, &x, sizeof words);
  Mask found = 0;
  for (int i = 0; i < BYTES / 8; i++)  // the product puts each byte's bit at its place in the top byte
    found |= (Mask)(((words[i] >> bit & 0x0101010101010101u) * 0x0102040810204080u) >> 56) << 8 * i;
  return found;
#endif
}

// The bytes with bit `bit`, which was 0, set where `bits` says.
INLINE Bytes with_bit(Bytes x, Mask bits, int bit) {
  uint64_t words[BYTES / 8];
  for (int i = 0; i < BYTES / 8; i++)  // each byte of a word of eight keeps another of the eight bits
    words[i] = (uint8_t)(bits >> 8 * i) * 0x0101010101010101u & 0x8040201008040201u;
  Bytes kept;
  memcpy(&kept, words, sizeof kept);
  return x | ((Bytes)(kept != 0) & (uint8_t)(1 << bit));
}

#endif

INLINE bool all(V x) { return !any(~x); }
INLINE bool holds(const V& x, int copy) { return ((const uint8_t*)&x)[copy / 8] >> copy % 8 & 1; }

// Bytes of 0 and 1, one for each copy, and the bits that they are.
INLINE void to_bytes(const V& x, uint8_t* bytes) {
  for (int g = 0; g < 8; g++) {
    Mask bits;
    memcpy(&bits, (const Mask*)&x + g, sizeof bits);
    Bytes found = with_bit(Bytes{}, bits, 0);
    memcpy(bytes + g * BYTES, &found, sizeof found);
  }
}
INLINE V from_bytes(const uint8_t* bytes) {
  V found;
  for (int g = 0; g < 8; g++) {
    Bytes x;
    memcpy(&x, bytes + g * BYTES, sizeof x);
    Mask bits = bit_of(x, 0);
    memcpy((Mask*)&found + g, &bits, sizeof bits);
  }
  return found;
}
