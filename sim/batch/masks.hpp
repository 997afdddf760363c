// Signals of one bit: a bit for each copy, all of them in one machine word.
#pragma once
#include "vectors.hpp"

// Truths, the bits that elements have, and the choice of elements by a truth. A V<1> has bit l of
// its word for copy l.

// The copies whose elements lie in register PART of a V<BITS>.
template <int BITS, int PART> constexpr Mask members() {
  Mask found = 0;
  for (int i = 0; i < WIDE<BITS>; i++) found |= Mask(1) << lane(BITS, PART * WIDE<BITS> + i);
  return found;
}

#if defined(__AVX512BW__) && defined(__BMI2__)
#include <immintrin.h>

// The bits of one register's copies side by side, and back.
template <int BITS, int PART> INLINE Mask taken(Mask x) {
  if constexpr (BITS == 8) return x;
  else return _pext_u64(x, members<BITS, PART>());
}
template <int BITS, int PART> INLINE Mask given(Mask x) {
  if constexpr (BITS == 8) return x;
  else return _pdep_u64(x, members<BITS, PART>());
}

#define TO_MASK(NAME, INSTRUCTION, TYPE)                                                          \
  template <int BITS> INLINE Mask NAME##_part(Register<BITS> a, Register<BITS> b) {               \
    auto x = (__m512i)a, y = (__m512i)b;                                                          \
    if constexpr (BITS == 8) return _mm512_##INSTRUCTION##_##TYPE##8_mask(x, y);                  \
    else if constexpr (BITS == 16) return _mm512_##INSTRUCTION##_##TYPE##16_mask(x, y);           \
    else if constexpr (BITS == 32) return _mm512_##INSTRUCTION##_##TYPE##32_mask(x, y);           \
    else return _mm512_##INSTRUCTION##_##TYPE##64_mask(x, y);                                     \
  }                                                                                               \
  template <int BITS, int... P>                                                                   \
  INLINE V<1> NAME##_parts(const V<BITS>& x, const V<BITS>& y, std::integer_sequence<int, P...>) { \
    return V<1>{{(given<BITS, P>(NAME##_part<BITS>(x.part[P], y.part[P])) | ...)}};               \
  }                                                                                               \
  template <int BITS> INLINE V<1> NAME(const V<BITS>& x, const V<BITS>& y) {                      \
    return NAME##_parts<BITS>(x, y, PARTS<BITS>);                                                 \
  }
TO_MASK(eq, cmpeq, epu)
TO_MASK(lt, cmplt, epu)
TO_MASK(slt, cmplt, epi)
TO_MASK(test, test, epi)
#undef TO_MASK

template <int BITS> INLINE Register<BITS> select_part(Mask when, Register<BITS> a, Register<BITS> b) {
  auto x = (__m512i)a, y = (__m512i)b;
  if constexpr (BITS == 8) return (Register<BITS>)_mm512_mask_blend_epi8(when, x, y);
  else if constexpr (BITS == 16) return (Register<BITS>)_mm512_mask_blend_epi16(when, x, y);
  else if constexpr (BITS == 32) return (Register<BITS>)_mm512_mask_blend_epi32(when, x, y);
  else return (Register<BITS>)_mm512_mask_blend_epi64(when, x, y);
}
template <int BITS, int... P>
INLINE V<BITS> select_parts(const V<1>& when, const V<BITS>& x, const V<BITS>& y,
                            std::integer_sequence<int, P...>) {
  return V<BITS>{{select_part<BITS>(taken<BITS, P>(when.part[0]), x.part[P], y.part[P])...}};
}
template <int BITS> INLINE V<BITS> select(const V<1>& when, const V<BITS>& x, const V<BITS>& y) {
  return select_parts<BITS>(when, x, y, PARTS<BITS>);
}
template <int BITS> INLINE V<BITS> where(const V<1>& when, const V<BITS>& x) {
  return select(when, splat<BITS>(0), x);
}

#else

// Bytes of 0 and 1 as bits, eight at a time: a product adds each byte's bit at a place of its own
// in the highest byte.
INLINE V<1> packed(const V<8>& bytes) {
  uint64_t words[LANES / 8];
  memcpy(words, &bytes, sizeof words);
  Mask found = 0;
  for (int i = 0; i < LANES / 8; i++) found |= (Mask)(words[i] * 0x0102040810204080u >> 56) << 8 * i;
  return V<1>{{found}};
}

// Bits as bytes of 0 and -1: each byte of a word of eight keeps another of the eight bits.
INLINE V<8> unpacked(const V<1>& x) {
  uint64_t words[LANES / 8];
  for (int i = 0; i < LANES / 8; i++)
    words[i] = (uint8_t)(x.part[0] >> 8 * i) * 0x0101010101010101u & 0x8040201008040201u;
  V<8> bytes;
  memcpy(&bytes, words, sizeof words);
  return invert(wide_eq(bytes, splat<8>(0)));
}

// Elements of 0 and -1 as bits.
template <int BITS> INLINE V<1> truth(const V<BITS>& x) {
  if constexpr (BITS > 8) return truth(trunc<8>(x));
#if defined(__AVX2__) && !defined(__AVX512BW__)
  else return V<1>{{(Mask)__builtin_ia32_pmovmskb256((typename Pack<char, 32>::type)x.part[0])}};
#elif defined(__SSE2__) && !defined(__AVX512BW__)
  else return V<1>{{(Mask)__builtin_ia32_pmovmskb128((typename Pack<char, 16>::type)x.part[0])}};
#else
  else return packed(both(x, splat<8>(1)));
#endif
}
template <int BITS> INLINE V<1> eq(const V<BITS>& x, const V<BITS>& y) { return truth(wide_eq(x, y)); }
template <int BITS> INLINE V<1> lt(const V<BITS>& x, const V<BITS>& y) { return truth(wide_lt(x, y)); }
template <int BITS> INLINE V<1> slt(const V<BITS>& x, const V<BITS>& y) { return truth(wide_slt(x, y)); }
template <int BITS> INLINE V<1> test(const V<BITS>& x, const V<BITS>& y) {
  return truth(invert(wide_eq(both(x, y), splat<BITS>(0))));
}

template <int BITS> INLINE V<BITS> where(const V<1>& when, const V<BITS>& x) {
  if constexpr (BITS == 8) return both(unpacked(when), x);
  else return both(sext<BITS>(unpacked(when)), x);
}
template <int BITS> INLINE V<BITS> select(const V<1>& when, const V<BITS>& x, const V<BITS>& y) {
  return differ(x, where(when, differ(x, y)));
}

#endif

// eq, lt and slt compare, test says where x and y have a bit in common, select gives y where the
// truth holds and else x, where gives x where it holds and else 0.

INLINE V<1> both(const V<1>& x, const V<1>& y) { return V<1>{{Mask(x.part[0] & y.part[0])}}; }
INLINE V<1> either(const V<1>& x, const V<1>& y) { return V<1>{{Mask(x.part[0] | y.part[0])}}; }
INLINE V<1> differ(const V<1>& x, const V<1>& y) { return V<1>{{Mask(x.part[0] ^ y.part[0])}}; }
INLINE V<1> invert(const V<1>& x) { return V<1>{{Mask(~x.part[0])}}; }
INLINE V<1> add(const V<1>& x, const V<1>& y) { return differ(x, y); }
INLINE V<1> sub(const V<1>& x, const V<1>& y) { return differ(x, y); }
INLINE V<1> eq(const V<1>& x, const V<1>& y) { return invert(differ(x, y)); }
INLINE V<1> lt(const V<1>& x, const V<1>& y) { return both(invert(x), y); }
INLINE V<1> slt(const V<1>& x, const V<1>& y) { return both(x, invert(y)); }
INLINE V<1> select(const V<1>& when, const V<1>& x, const V<1>& y) {
  return differ(x, both(when, differ(x, y)));
}

INLINE bool any_true(const V<1>& x) { return x.part[0] != 0; }
INLINE bool all_true(const V<1>& x) { return x.part[0] == Mask(-1); }
INLINE bool holds(const V<1>& x, int copy) { return x.part[0] >> copy & 1; }
