// Vectors of outputs, and what one step adds to them, for the processor compiled for.
//
// A word holds neighbouring lanes of one row: four of 8 bits or two of 16. A step takes a word of
// the left operand and, for each of W columns, a word of the right one.
#pragma once

#include "common.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define AXS6_VNNI
#endif

#if defined(AXS6_VNNI) && defined(__AMX_BF16__) && defined(__linux__)
#define AXS6_TILES
#endif

namespace axs6 {

#if defined(__AVX2__)
constexpr int TRUNCATE = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
#endif

// The 8-bit instruction takes unsigned lanes on one side: those are stored with this added.
constexpr int UNSIGNED_OFFSET = 128;

#if defined(AXS6_VNNI)

constexpr const char* FORM = "avx512_vnni";
constexpr int W = 16, ROWS = 6, DOUBLE_ROWS = 12;
constexpr bool HAS_8_BIT = true;

#elif defined(__AVX2__) && defined(__FMA__)

constexpr const char* FORM = "avx2";
constexpr int W = 8, ROWS = 4, DOUBLE_ROWS = 6;
constexpr bool HAS_8_BIT = false;

#else

constexpr const char* FORM = "plain";
constexpr int W = 4, ROWS = 2, DOUBLE_ROWS = 2;
constexpr bool HAS_8_BIT = false;

#endif

typedef int32_t Ints __attribute__((vector_size(4 * W)));
typedef float Floats __attribute__((vector_size(4 * W)));
typedef double Doubles __attribute__((vector_size(4 * W)));
constexpr int DOUBLES = W / 2;
typedef float HalfFloats __attribute__((vector_size(4 * DOUBLES)));

// Vectors in arrays, which need not be aligned.
typedef Ints IntsAt __attribute__((aligned(4), may_alias));
typedef Floats FloatsAt __attribute__((aligned(4), may_alias));

inline Ints load(const int32_t* from) { return *reinterpret_cast<const IntsAt*>(from); }
inline Floats load(const float* from) { return *reinterpret_cast<const FloatsAt*>(from); }
inline void store(float* to, Floats x) { *reinterpret_cast<FloatsAt*>(to) = x; }

inline Floats canonical(Floats x) {
    const Floats nan = Floats{} + std::numeric_limits<float>::quiet_NaN();
    return x == x ? x : nan;
}

// A product that no FMA takes in.
inline Floats unfused(Floats x) {
#if defined(__x86_64__)
    asm("" : "+v"(x));
    return x;
#else
    return canonical(x);
#endif
}

inline Ints repeat(int32_t x) { return Ints{} + x; }

template <class Lane>
inline Ints step(Ints sum, Ints right, int32_t left);

// The sum of a block of lanes, a multiple of 4.
template <class Lane>
inline int32_t sum_of(const Lane* lanes, int64_t count) {
    int32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += lanes[i];
    return sum;
}

#if defined(AXS6_VNNI)

template <>
inline Ints step<int8_t>(Ints sum, Ints right, int32_t left) {
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)right, _mm512_set1_epi32(left));
}

template <>
inline Ints step<int16_t>(Ints sum, Ints right, int32_t left) {
    return (Ints)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)right, _mm512_set1_epi32(left));
}

template <>
inline int32_t sum_of<int8_t>(const int8_t* lanes, int64_t count) {
    const __m128i ones = _mm_set1_epi8(1);
    __m128i sums = _mm_setzero_si128();
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const auto* from = reinterpret_cast<const __m128i*>(lanes + i);
        sums = _mm_dpbusd_epi32(sums, ones, _mm_loadu_si128(from));
    }
    for (; i < count; i += 4) {
        int32_t word;
        std::memcpy(&word, lanes + i, 4);
        sums = _mm_dpbusd_epi32(sums, ones, _mm_cvtsi32_si128(word));
    }
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0b01'00'11'10));
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 1);
}

inline Doubles truncated(Doubles x) { return _mm512_roundscale_pd(x, TRUNCATE); }
inline Doubles floored(Doubles x) { return _mm512_roundscale_pd(x, DOWN); }
inline Doubles fused(Doubles x, Doubles y, Doubles z) { return _mm512_fmadd_pd(x, y, z); }
inline Floats fused(Floats x, Floats y, Floats z) { return _mm512_fmadd_ps(x, y, z); }

// x * y + z to within the last bit of FP32, which is 1 where bits are lost.
inline Floats fused_to_odd(Floats x, Floats y, Floats z) {
    const __m512 up = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __m512 down = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512 near = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const auto bits = (__m512i)near, one = _mm512_set1_epi32(1);
    const __mmask16 lost = _mm512_cmp_ps_mask(up, down, _CMP_NEQ_UQ);
    return (Floats)_mm512_mask_or_epi32(bits, lost, bits, one);
}

#elif defined(__AVX2__) && defined(__FMA__)

template <>
inline Ints step<int16_t>(Ints sum, Ints right, int32_t left) {
    return sum + (Ints)_mm256_madd_epi16((__m256i)right, _mm256_set1_epi32(left));
}

inline Doubles truncated(Doubles x) { return _mm256_round_pd(x, TRUNCATE); }
inline Doubles floored(Doubles x) { return _mm256_round_pd(x, DOWN); }
inline Doubles fused(Doubles x, Doubles y, Doubles z) { return _mm256_fmadd_pd(x, y, z); }

#else

template <>
inline Ints step<int16_t>(Ints sum, Ints right, int32_t left) {
    const int32_t low = static_cast<int16_t>(left), high = left >> 16;
    return sum + (right << 16 >> 16) * low + (right >> 16) * high;
}

inline Doubles truncated(Doubles x) {
    for (int i = 0; i < DOUBLES; ++i) x[i] = std::trunc(x[i]);
    return x;
}

inline Doubles floored(Doubles x) {
    for (int i = 0; i < DOUBLES; ++i) x[i] = std::floor(x[i]);
    return x;
}

inline Doubles fused(Doubles x, Doubles y, Doubles z) {
    for (int i = 0; i < DOUBLES; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return z;
}

#endif

// Products of numbers to within the last bit of float64, which is 1 where bits are lost.
inline Doubles products_to_odd(Doubles x, Doubles y) {
    typedef int64_t Longs __attribute__((vector_size(4 * W)));
    const Doubles product = x * y, lost = fused(x, y, -product);
    const Longs above = lost > 0, below = lost < 0, positive = product > 0, negative = product < 0;
    const Longs bits = (Longs)product + ((below & positive) | (above & negative));
    return (Doubles)(bits | ((above | below) & 1));
}

}  // namespace axs6
