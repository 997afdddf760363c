// Vectors over copies of a design: one element for each copy, in hardware registers.
//
// A signal is a V<BITS>: BITS is 1, 8, 16, 32 or 64, whatever holds its width. Every V has LANES
// elements, so a V<8> takes a register, a V<16> two, a V<32> four and a V<64> eight; a V<1> is the
// bits of one machine word.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX512BW__)
constexpr int LANES = 64;
using Mask = uint64_t;
#elif defined(__AVX2__)
constexpr int LANES = 32;
using Mask = uint32_t;
#else
constexpr int LANES = 16;
using Mask = uint16_t;
#endif

template <int BITS> struct Element;
template <> struct Element<1> { using U = uint8_t; };
template <> struct Element<8> { using U = uint8_t; using S = int8_t; };
template <> struct Element<16> { using U = uint16_t; using S = int16_t; };
template <> struct Element<32> { using U = uint32_t; using S = int32_t; };
template <> struct Element<64> { using U = uint64_t; using S = int64_t; };
template <int BITS> using U = typename Element<BITS>::U;
template <int BITS> using S = typename Element<BITS>::S;

template <class T, int COUNT> struct Pack { typedef T type __attribute__((vector_size(sizeof(T) * COUNT))); };
template <int BITS> constexpr int WIDE = LANES * 8 / BITS;  // elements in a register
template <int BITS> using Register = typename Pack<U<BITS>, WIDE<BITS>>::type;
template <int BITS> using SignedRegister = typename Pack<S<BITS>, WIDE<BITS>>::type;

template <int BITS> struct V {
  static constexpr int PARTS = BITS / 8;
  Register<BITS> part[PARTS];
};
template <> struct V<1> {
  Mask part[1];
};

#define INLINE static inline __attribute__((always_inline))

// Operations act on each register of a V; packs in place of loops leave the compiler straight code.
template <int BITS> constexpr auto PARTS = std::make_integer_sequence<int, V<BITS>::PARTS>{};

template <int BITS, int... P> INLINE V<BITS> splat_parts(U<BITS> x, std::integer_sequence<int, P...>) {
  return V<BITS>{{(Register<BITS>{} + (P, x))...}};
}
template <int BITS> INLINE V<BITS> splat(U<BITS> x) {
  if constexpr (BITS == 1) return V<1>{{Mask(-(Mask)x)}};
  else return splat_parts<BITS>(x, PARTS<BITS>);
}

#define BINARY(NAME, EXPRESSION)                                                                  \
  template <int BITS> INLINE Register<BITS> NAME##_part(Register<BITS> a, Register<BITS> b) {     \
    return (Register<BITS>)(EXPRESSION);                                                          \
  }                                                                                               \
  template <int BITS, int... P>                                                                   \
  INLINE V<BITS> NAME##_parts(const V<BITS>& x, const V<BITS>& y, std::integer_sequence<int, P...>) { \
    return V<BITS>{{NAME##_part<BITS>(x.part[P], y.part[P])...}};                                 \
  }                                                                                               \
  template <int BITS> INLINE V<BITS> NAME(const V<BITS>& x, const V<BITS>& y) {                   \
    return NAME##_parts<BITS>(x, y, PARTS<BITS>);                                                 \
  }
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(both, a & b)
BINARY(either, a | b)
BINARY(differ, a ^ b)
BINARY(shl, a << b)
BINARY(shr, a >> b)
BINARY(sar, (SignedRegister<BITS>)a >> (SignedRegister<BITS>)b)
BINARY(wide_eq, a == b)
BINARY(wide_lt, a < b)
BINARY(wide_slt, (SignedRegister<BITS>)a < (SignedRegister<BITS>)b)
#undef BINARY

#define WITH_AMOUNT(NAME, EXPRESSION)                                                             \
  template <int BITS, int... P>                                                                   \
  INLINE V<BITS> NAME##_by(const V<BITS>& x, int n, std::integer_sequence<int, P...>) {           \
    return V<BITS>{{(Register<BITS>)(EXPRESSION)...}};                                            \
  }                                                                                               \
  template <int BITS> INLINE V<BITS> NAME(const V<BITS>& x, int n) {                              \
    return NAME##_by<BITS>(x, n, PARTS<BITS>);                                                    \
  }
WITH_AMOUNT(shl, x.part[P] << n)
WITH_AMOUNT(shr, x.part[P] >> n)
WITH_AMOUNT(sar, (SignedRegister<BITS>)x.part[P] >> n)
#undef WITH_AMOUNT

template <int BITS, int... P> INLINE V<BITS> invert_parts(const V<BITS>& x, std::integer_sequence<int, P...>) {
  return V<BITS>{{(~x.part[P])...}};
}
template <int BITS> INLINE V<BITS> invert(const V<BITS>& x) { return invert_parts<BITS>(x, PARTS<BITS>); }

// Twice the element, in place: the low halves of a register's elements go to one register, the high
// halves to the next. So no element crosses a register, and LANE tells where each copy is.
template <int FROM, bool SIGNED, int PART> INLINE Register<2 * FROM> widen_part(const V<FROM>& x) {
  using Wide = std::conditional_t<SIGNED, SignedRegister<2 * FROM>, Register<2 * FROM>>;
  auto pairs = (Wide)x.part[PART / 2];
  if constexpr (PART % 2) return (Register<2 * FROM>)(pairs >> FROM);
  else if constexpr (SIGNED) return (Register<2 * FROM>)((Wide)((Register<2 * FROM>)pairs << FROM) >> FROM);
  else return pairs & (U<2 * FROM>)(U<FROM>)-1;
}

template <int FROM, bool SIGNED, int... PART>
INLINE V<2 * FROM> widen_parts(const V<FROM>& x, std::integer_sequence<int, PART...>) {
  return V<2 * FROM>{{widen_part<FROM, SIGNED, PART>(x)...}};
}

template <int TO, bool SIGNED, int FROM> INLINE V<TO> widen(const V<FROM>& x) {
  auto twice = widen_parts<FROM, SIGNED>(x, PARTS<2 * FROM>);
  if constexpr (TO == 2 * FROM) return twice;
  else return widen<TO, SIGNED>(twice);
}
template <int TO, int FROM> INLINE V<TO> zext(const V<FROM>& x) { return widen<TO, false>(x); }
template <int TO, int FROM> INLINE V<TO> sext(const V<FROM>& x) { return widen<TO, true>(x); }

// The copy whose element lies at a position of a V<BITS> in memory.
constexpr int lane(int bits, int position) {
  if (bits <= 8) return position;
  int width = LANES * 8 / bits, part = position / width, within = position % width;
  return lane(bits / 2, part / 2 * 2 * width + 2 * within + part % 2);
}

// Drops the upper half of each element.
template <int FROM, int... P> INLINE V<FROM / 2> halve(const V<FROM>& x, std::integer_sequence<int, P...>) {
  constexpr int TO = FROM / 2;
  return V<TO>{{(Register<TO>)((x.part[2 * P] & (U<FROM>)(U<TO>)-1) | x.part[2 * P + 1] << TO)...}};
}

template <int TO, int FROM> INLINE V<TO> trunc(const V<FROM>& x) {
  auto half = halve(x, PARTS<FROM / 2>);
  if constexpr (TO == FROM / 2) return half;
  else return trunc<TO>(half);
}
