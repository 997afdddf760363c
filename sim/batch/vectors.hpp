// Vectors over copies of a design: one element for each copy, in hardware registers.
//
// A signal is a V<BITS>: BITS is 8, 16, 32 or 64, whatever holds its width. Every V has LANES
// elements, so a V<16> takes two registers, a V<32> four and a V<64> eight.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512BW__)
constexpr int LANES = 64;
#elif defined(__AVX2__)
constexpr int LANES = 32;
#else
constexpr int LANES = 16;
#endif

template <int BITS> struct Element;
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

#define INLINE static inline __attribute__((always_inline))

template <int BITS> INLINE V<BITS> splat(U<BITS> x) {
  V<BITS> y;
  for (int p = 0; p < V<BITS>::PARTS; p++) y.part[p] = Register<BITS>{} + x;
  return y;
}

#define BINARY(NAME, EXPRESSION)                                                   \
  template <int BITS> INLINE V<BITS> NAME(const V<BITS>& x, const V<BITS>& y) {    \
    V<BITS> z;                                                                     \
    for (int p = 0; p < V<BITS>::PARTS; p++) {                                     \
      auto a = x.part[p];                                                          \
      auto b = y.part[p];                                                          \
      z.part[p] = (Register<BITS>)(EXPRESSION);                                    \
    }                                                                              \
    return z;                                                                      \
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

template <int BITS> INLINE V<BITS> invert(const V<BITS>& x) {
  V<BITS> y;
  for (int p = 0; p < V<BITS>::PARTS; p++) y.part[p] = ~x.part[p];
  return y;
}

template <int BITS> INLINE V<BITS> shl(const V<BITS>& x, int n) {
  V<BITS> y;
  for (int p = 0; p < V<BITS>::PARTS; p++) y.part[p] = x.part[p] << n;
  return y;
}

template <int BITS> INLINE V<BITS> shr(const V<BITS>& x, int n) {
  V<BITS> y;
  for (int p = 0; p < V<BITS>::PARTS; p++) y.part[p] = x.part[p] >> n;
  return y;
}

template <int BITS> INLINE V<BITS> sar(const V<BITS>& x, int n) {
  V<BITS> y;
  for (int p = 0; p < V<BITS>::PARTS; p++)
    y.part[p] = (Register<BITS>)((SignedRegister<BITS>)x.part[p] >> n);
  return y;
}

// The COUNT elements of a register from FIRST on, and two halves as one register.
template <int FIRST, class Vector, int... I>
INLINE auto slice(Vector x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (FIRST + I)...);
}
template <class Vector, int... I>
INLINE auto join(Vector x, Vector y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, I...);
}

template <int TO, int FROM, bool SIGNED, int PART> INLINE Register<TO> widen_part(const V<FROM>& x) {
  constexpr int COUNT = WIDE<TO>, FIRST = PART * COUNT % WIDE<FROM>;
  auto source = x.part[PART * COUNT / WIDE<FROM>];
  if constexpr (SIGNED) {
    auto few = slice<FIRST>((SignedRegister<FROM>)source, std::make_integer_sequence<int, COUNT>{});
    return (Register<TO>)__builtin_convertvector(few, SignedRegister<TO>);
  } else {
    auto few = slice<FIRST>(source, std::make_integer_sequence<int, COUNT>{});
    return __builtin_convertvector(few, Register<TO>);
  }
}

template <int TO, int FROM, bool SIGNED, int... PART>
INLINE V<TO> widen_parts(const V<FROM>& x, std::integer_sequence<int, PART...>) {
  return V<TO>{{widen_part<TO, FROM, SIGNED, PART>(x)...}};
}

template <int TO, int FROM> INLINE V<TO> zext(const V<FROM>& x) {
  return widen_parts<TO, FROM, false>(x, std::make_integer_sequence<int, V<TO>::PARTS>{});
}

template <int TO, int FROM> INLINE V<TO> sext(const V<FROM>& x) {
  return widen_parts<TO, FROM, true>(x, std::make_integer_sequence<int, V<TO>::PARTS>{});
}

// Drops the upper half of each element.
template <int FROM> INLINE V<FROM / 2> halve(const V<FROM>& x) {
  constexpr int TO = FROM / 2;
  using Few = typename Pack<U<TO>, WIDE<FROM>>::type;
  V<TO> y;
  for (int p = 0; p < V<TO>::PARTS; p++)
    y.part[p] = join(__builtin_convertvector(x.part[2 * p], Few),
                     __builtin_convertvector(x.part[2 * p + 1], Few),
                     std::make_integer_sequence<int, WIDE<TO>>{});
  return y;
}

template <int TO, int FROM> INLINE V<TO> trunc(const V<FROM>& x) {
  if constexpr (TO == FROM / 2) return halve<FROM>(x);
  else return trunc<TO>(halve<FROM>(x));
}

// Truths are V<8> of 0 and -1.
template <int BITS> INLINE V<8> truth(const V<BITS>& x) {
  if constexpr (BITS == 8) return x;
  else return trunc<8>(x);
}
template <int BITS> INLINE V<8> eq(const V<BITS>& x, const V<BITS>& y) { return truth(wide_eq(x, y)); }
template <int BITS> INLINE V<8> lt(const V<BITS>& x, const V<BITS>& y) { return truth(wide_lt(x, y)); }
template <int BITS> INLINE V<8> slt(const V<BITS>& x, const V<BITS>& y) { return truth(wide_slt(x, y)); }

// y where the truth holds, else x.
template <int BITS> INLINE V<BITS> select(const V<8>& when, const V<BITS>& x, const V<BITS>& y) {
  V<BITS> mask;
  if constexpr (BITS == 8) mask = when;
  else mask = sext<BITS>(when);
  V<BITS> z;
  for (int p = 0; p < V<BITS>::PARTS; p++)
    z.part[p] = (x.part[p] & ~mask.part[p]) | (y.part[p] & mask.part[p]);
  return z;
}

INLINE bool any_true(const V<8>& x) {
  uint64_t words[LANES / 8], some = 0;
  memcpy(words, &x, sizeof words);
  for (int i = 0; i < LANES / 8; i++) some |= words[i];
  return some != 0;
}
