// Blocks of FP32 values to integers of the element's unit under power-of-two scales.
//
// Over its scale and in units, a value is rounded to a whole number, or, above 2^(fraction + 1), to
// one with `fraction` bits after its first: floating-point elements and fixed ones alike. Elements
// with a divisor are rounded by integers, which hold divisor * significand. Blocks near the ends of
// FP32's range and those with NaN or infinities take `slow_block`, in float64.
#pragma once

#include "common.hpp"

namespace axs6 {

enum Rule : int32_t { FLOOR, CEIL, EVEN, RCEIL };
enum Choice : int32_t { MAX, FOUR_OVER_SIX, MSE };

constexpr int MAX_STEPS = 15;

// Entries of a table. Values are counted in 2^unit.
struct Ladder {
    int32_t steps;                      // from entry to entry; 0 where there is no table
    int32_t negative_zero, minus_zero;  // as `signed_zero` and `minus_zero` below
    float lowest;                       // entry, in units
    // From which value on there is one more, and how high; infinity and 0 where there are fewer.
    float bounds[MAX_STEPS], step[MAX_STEPS];
    float entries[MAX_STEPS + 1];  // in units, the last one again where there are fewer
};

struct Format {
    int32_t block, group;  // values under one exponent; under one shift, or `block` without shifts
    int32_t shift_top;     // the largest shift, 0 without shifts
    int32_t emax, bias, code_top, rule, precision;  // of the exponent's scale
    int32_t unit;          // the element's unit is 2^unit / divisor
    int32_t fraction, divisor;
    int32_t signed_zero, minus_zero;  // zeros from negative values, and from -0.0, have the sign
    int32_t offset;        // of the factor 2^(code + offset) of integers
    int32_t choice;        // of the scale of a block
    int32_t ties_away;     // a half goes to the larger magnitude, not the even one
    int32_t wide_group, wide_top;  // of a second, coarser shift below a real scale
    float largest;         // in units
    Ladder ladders[2];     // of both elements of which a scale selects one, or of one table

    bool listed() const { return ladders[0].steps; }
    bool selected() const { return ladders[1].steps; }
};

constexpr uint32_t MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000, HIDDEN = 1 << 23;
constexpr int MAX_BLOCK = 256;

// An integer with the sign of zero that the format has, from the pattern of what was encoded.
inline float signed_zero(const Format& f, float q, uint32_t bits) {
    // Adding +0 takes the sign of -0 off.
    if (!f.signed_zero) return q + 0.0f;
    return !f.minus_zero && bits == ~MAGNITUDE ? 0.0f : q;
}

template <class Lane>
inline Lane to_lane(float integer) {
    if constexpr (std::is_integral_v<Lane>)
        return static_cast<Lane>(static_cast<int32_t>(integer));
    else
        return Lane(integer);
}

// A block in integers: q * 2^(code - bias - shift + unit) / divisor.
struct Quantised {
    alignas(64) float q[MAX_BLOCK];      // with their signs, that of zero too
    alignas(64) int32_t shift[MAX_BLOCK];  // of each lane; not set where there are none
    int code, scale;  // `scale` is code - bias + unit; any number for zeros
    bool plain;       // whether FP32 holds the scale of every lane, so that products with it are right
};

inline int clamp_code(const Format& f, int code) {
    return std::max(0, std::min(code, static_cast<int>(f.code_top)));
}

// The code of the scale of a block whose largest magnitude is a normal number.
inline int quick_code(const Format& f, uint32_t top) {
    int emax = f.emax;
    if (f.rule == CEIL)
        top += HIDDEN - 1;
    else if (f.rule == EVEN)
        top += 1u << (22 - f.precision);
    else if (f.rule == RCEIL) {
        const double largest = std::ldexp(static_cast<double>(f.largest), f.unit) / f.divisor;
        const auto quotient = static_cast<float>(bits_of<float>(top) / largest);
        top = bits_of<uint32_t>(quotient) + HIDDEN - 1;
        emax = 0;
    }
    return clamp_code(f, static_cast<int>(top >> 23) - 127 - emax + f.bias);
}

inline double exact_value(uint32_t magnitude) {
    const int field = static_cast<int>(magnitude >> 23);
    const uint32_t fraction = magnitude & (HIDDEN - 1);
    return std::ldexp(field ? fraction | HIDDEN : fraction, std::max(field, 1) - 150);
}

inline int exact_code(const Format& f, double largest) {
    if (largest == 0) return 0;
    int exponent;
    const double significand = 2 * std::frexp(largest, &exponent);
    int code = exponent - 1 - f.emax;
    if (f.rule == CEIL) code += significand > 1;
    if (f.rule == EVEN) code += significand >= 2 - std::ldexp(1, -1 - f.precision);
    if (f.rule == RCEIL) {
        const double top = std::ldexp(static_cast<double>(f.largest), f.unit) / f.divisor;
        const auto quotient = static_cast<float>(largest / top);
        if (quotient == 0) return 0;
        if (std::isinf(quotient)) return clamp_code(f, 128 + f.bias);
        const double rest = 2 * std::frexp(static_cast<double>(quotient), &exponent);
        code = exponent - 1 + (rest > 1);
    }
    return clamp_code(f, code + f.bias);
}

// The merit of a scale in units of it, as `axs6.golden.choice` has it, of magnitudes times `over` in
// units of the element. All is exact: no sum has more than 53 bits.
template <class Real>
inline double merit(const Format& f, const Real* magnitudes, int count, double over) {
    constexpr double FRACTION = 1 << 11;
    const double largest = f.largest, most = std::ldexp(FRACTION, std::ilogb(largest) + 2) - 1;
    const int fraction = f.divisor > 1 ? 8 : f.fraction;  // divided elements are whole numbers
    const uint64_t least = static_cast<uint64_t>(1023 + fraction) << 52;
    const uint64_t magic = (static_cast<uint64_t>(52 - fraction) << 52) + (uint64_t{1} << 51);
    double total = 0;
    for (int i = 0; i < count; ++i) {
        const double x = magnitudes[i] * over, held = std::min(x, largest);
        const double whole = std::trunc(std::min(x * FRACTION, most));
        const uint64_t binade = std::max(bits_of<uint64_t>(held) & (uint64_t{0x7FF} << 52), least);
        const double rounder = bits_of<double>(binade + magic);
        const double q = (held + rounder) - rounder;
        total += q * (2 * whole - q * FRACTION);
    }
    return total;
}

// The code of the rule or one of its neighbours: the first of the largest merits.
inline int best_code(const Format& f, const double* magnitudes, int count, int code) {
    const auto of = [&](int other) {
        const double over = std::ldexp(static_cast<double>(f.divisor), f.bias - f.unit - other);
        return std::ldexp(merit(f, magnitudes, count, over), 2 * (other - code));
    };
    int best = code;
    double most = of(code);
    for (const int other : {std::max(code - 1, 0), std::min(code + 1, static_cast<int>(f.code_top))}) {
        const double found = of(other);
        if (found > most) best = other, most = found;
    }
    return best;
}

// The entry of a table that a value is rounded to.
template <class Real>
inline Real listed(const Ladder& table, Real x) {
    Real q = table.lowest;
    for (int k = 0; k < table.steps; ++k) q += x >= table.bounds[k] ? table.step[k] : 0;
    return q;
}

// Any block. Infinities become the largest value, NaN +0.
inline void slow_block(const Format& f, const uint32_t* bits, Quantised& out) {
    double x[MAX_BLOCK], largest = 0;
    for (int i = 0; i < f.block; ++i) {
        const uint32_t magnitude = bits[i] & MAGNITUDE;
        x[i] = magnitude > INFINITE ? 0 : exact_value(std::min(magnitude, INFINITE - 1));
        largest = std::max(largest, x[i]);
    }
    out.code = exact_code(f, largest);
    if (f.choice != MAX) out.code = best_code(f, x, f.block, out.code);
    out.scale = out.code - f.bias + f.unit;
    out.plain = false;
    for (int start = 0; start < f.block; start += f.group) {
        double most = 0;
        for (int i = start; i < start + f.group; ++i) most = std::max(most, x[i]);
        int shift = f.shift_top;
        if (most > 0 && shift) shift = std::min(shift, std::ilogb(largest) - std::ilogb(most));
        const int scale = out.scale - shift;
        for (int i = start; i < start + f.group; ++i) {
            const bool nan = (bits[i] & MAGNITUDE) > INFINITE;
            out.shift[i] = shift;
            double q = std::ldexp(x[i], -scale) * f.divisor, step = 1;
            if (f.listed()) {
                out.q[i] = static_cast<float>(listed(f.ladders[0], bits[i] >> 31 ? -q : q));
                continue;
            }
            if (f.divisor == 1 && q > 0)
                step = std::ldexp(1, std::max(0, std::ilogb(q) - f.fraction));
            const double whole = f.ties_away ? std::round(q) : std::nearbyint(q / step) * step;
            q = std::min(whole, static_cast<double>(f.largest));
            if ((bits[i] & MAGNITUDE) == INFINITE) q = f.largest;
            out.q[i] = static_cast<float>(bits[i] >> 31 && !nan ? -q : q);
        }
    }
}

inline void zero_block(const Format& f, const uint32_t* bits, int count, Quantised& out) {
    out.code = out.scale = 0;
    out.plain = true;
    for (int i = 0; i < count; ++i) {
        out.q[i] = bits_of<float>(bits[i]);
        out.shift[i] = f.shift_top;
    }
}

template <int GROUP>
inline void quick_shifts(const Format& f, const uint32_t* bits, int count, int field,
                         Quantised& out) {
    if constexpr (GROUP == 2) {
        uint64_t pairs[MAX_BLOCK / 2];
        uint32_t others[MAX_BLOCK];
        std::memcpy(pairs, bits, 4 * count);
        for (int i = 0; i < count / 2; ++i) pairs[i] = pairs[i] << 32 | pairs[i] >> 32;
        std::memcpy(others, pairs, 4 * count);
        for (int i = 0; i < count; ++i) {
            const uint32_t most = std::max(bits[i] & MAGNITUDE, others[i] & MAGNITUDE);
            out.shift[i] = std::min(f.shift_top, field - static_cast<int32_t>(most >> 23));
        }
    } else {
        for (int start = 0; start < count; start += f.group) {
            uint32_t most = 0;
            for (int i = start; i < start + f.group; ++i)
                most = std::max(most, bits[i] & MAGNITUDE);
            const int shift = std::min<int>(f.shift_top, field - static_cast<int>(most >> 23));
            for (int i = start; i < start + f.group; ++i) out.shift[i] = shift;
        }
    }
}

// divisor * significand over its power of two; halfway is at 1/2 alone, where up is even.
template <int B>
inline void divided_block(const Format& f, const uint32_t* bits, int count, int scale,
                          Quantised& out) {
    const int top = scale + 127 + 22;  // the field of 2^scale, and a bit less than a significand
    for (int i = 0; i < (B ? B : count); ++i) {
        const uint32_t magnitude = bits[i] & MAGNITUDE;
        const uint32_t scaled = ((magnitude & (HIDDEN - 1)) | HIDDEN) * f.divisor;
        const uint32_t drop = std::min<uint32_t>(top - (magnitude >> 23), 31);
        const int32_t q = ((scaled >> drop) + 1) >> 1;
        out.q[i] = bits_of<float>(bits_of<uint32_t>(static_cast<float>(q)) | (bits[i] & ~MAGNITUDE));
    }
}

constexpr int PART = 16;  // lanes whose entries stay in registers
typedef float Part __attribute__((vector_size(4 * PART)));

#if defined(__AVX512F__)

// Entries of values, of PART lanes: a search in halves, whose tables are registers.
inline void listed_part(const Ladder& table, const float* x, float* to) {
    static_assert(MAX_STEPS + 1 == PART);
    const __m512 given = _mm512_loadu_ps(x), entries = _mm512_loadu_ps(table.entries);
    const __m512 bounds = _mm512_maskz_loadu_ps((1 << MAX_STEPS) - 1, table.bounds);
    __m512i place = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int half = PART / 2; half; half /= 2) {
        const __m512i middle = _mm512_add_epi32(place, _mm512_set1_epi32(half - 1));
        const __m512 bound = _mm512_permutexvar_ps(middle, bounds);
        const __mmask16 up = _mm512_cmp_ps_mask(given, bound, _CMP_GE_OQ);
        place = _mm512_mask_add_epi32(place, up, place, _mm512_set1_epi32(half));
    }
    _mm512_storeu_ps(to, _mm512_permutexvar_ps(place, entries));
}

#else

// Entries of values, of PART lanes. Three sums, so that the one does not wait for the other.
inline void listed_part(const Ladder& table, const float* x, float* to) {
    Part given, sums[3] = {Part{} + table.lowest};
    std::memcpy(&given, x, sizeof given);
#pragma GCC unroll 15
    for (int k = 0; k < MAX_STEPS; ++k)
        sums[k % 3] += given >= table.bounds[k] ? Part{} + table.step[k] : Part{};
    sums[0] += sums[1] + sums[2];
    std::memcpy(to, sums, sizeof given);
}

#endif

inline void listed_lanes(const Ladder& table, const float* x, int count, float* to) {
    int start = 0;
    for (; start + PART <= count; start += PART) listed_part(table, x + start, to + start);
    for (; start < count; ++start) to[start] = listed(table, x[start]);
}

template <int B, bool SHIFTED>
inline void listed_block(const Format& f, const uint32_t* bits, int count, int scale,
                         Quantised& out) {
    const uint32_t reciprocal = static_cast<uint32_t>(127 - scale) << 23;
    alignas(64) float x[MAX_BLOCK];
    for (int i = 0; i < (B ? B : count); ++i) {
        const uint32_t more = SHIFTED ? static_cast<uint32_t>(out.shift[i]) << 23 : 0;
        x[i] = bits_of<float>(bits[i]) * bits_of<float>(reciprocal + more);
    }
    listed_lanes(f.ladders[0], x, B ? B : count, out.q);
}

// AWAY: a half goes to the larger magnitude, in elements whose values are all whole numbers.
template <int B, bool SHIFTED, bool AWAY>
inline void rounded_lanes(const Format& f, const uint32_t* bits, int count, int scale,
                          Quantised& out) {
    const uint32_t reciprocal = static_cast<uint32_t>(127 - scale) << 23;
    const float largest = f.largest;
    const uint32_t least = static_cast<uint32_t>(127 + f.fraction) << 23;
    const uint32_t magic = (static_cast<uint32_t>(23 - f.fraction) << 23) + (1 << 22);
    for (int i = 0; i < (B ? B : count); ++i) {
        const uint32_t more = SHIFTED ? static_cast<uint32_t>(out.shift[i]) << 23 : 0;
        const float over = bits_of<float>(bits[i] & MAGNITUDE) * bits_of<float>(reciprocal + more);
        const float x = std::min(over, largest);  // so that there is a rounder for every value
        const uint32_t binade = std::max(bits_of<uint32_t>(x) & INFINITE, least);
        const float rounder = bits_of<float>(binade + magic);
        float q = (x + rounder) - rounder;
        if (AWAY) q = x - q == 0.5f ? q + 1 : q;
        out.q[i] = bits_of<float>(bits_of<uint32_t>(q) | (bits[i] & ~MAGNITUDE));
    }
}

template <int B, bool SHIFTED>
inline void rounded_block(const Format& f, const uint32_t* bits, int count, int scale,
                          Quantised& out) {
    if (f.listed())
        listed_block<B, SHIFTED>(f, bits, count, scale, out);
    else if (f.ties_away)
        rounded_lanes<B, SHIFTED, true>(f, bits, count, scale, out);
    else
        rounded_lanes<B, SHIFTED, false>(f, bits, count, scale, out);
}

// B, GROUP: sizes known when compiled, or 0; GROUP = 1 where there are no shifts.
template <int B, int GROUP>
inline bool quantise_block(const Format& f, const uint32_t* bits, Quantised& out) {
    const int count = B ? B : f.block;
    uint32_t top = 0;
    for (int i = 0; i < count; ++i) top = std::max(top, bits[i] & MAGNITUDE);
    const int field = static_cast<int>(top >> 23);
    // Below, subnormal values, scales or quotients count; at the top FP32 might not hold the scale.
    const int least = 32 + f.shift_top + std::max(0, f.emax - std::min(f.unit, 0));
    if (top == 0) {
        zero_block(f, bits, count, out);
        return true;
    }
    if (field < least || field > 253) {
        slow_block(f, bits, out);
        return top < INFINITE;
    }
    out.code = quick_code(f, top);
    if (f.choice != MAX) {
        double magnitudes[MAX_BLOCK];
        for (int i = 0; i < count; ++i) magnitudes[i] = bits_of<float>(bits[i] & MAGNITUDE);
        out.code = best_code(f, magnitudes, count, out.code);
    }
    const int scale = out.scale = out.code - f.bias + f.unit;
    if (scale - f.shift_top < -126 || scale > 126 || (f.divisor > 1 && scale < field - 126)) {
        slow_block(f, bits, out);
        return true;
    }
    out.plain = true;
    if (GROUP != 1) quick_shifts<GROUP>(f, bits, count, field, out);
    if (f.divisor > 1)
        divided_block<B>(f, bits, count, scale, out);
    else
        rounded_block<B, GROUP != 1>(f, bits, count, scale, out);
    return true;
}

}  // namespace axs6
