// Blocks of FP32 values under real scales of rows, and real or integer scales of blocks below them.
//
// As in the golden model, values are multiplied by the reciprocals of their scales, in FP32, before
// they are rounded to the element.
#pragma once

#include "quantise.hpp"

namespace axs6 {

enum Kind : int32_t { NONE, REAL, INTEGER };

// The scale of a block.
struct Scale {
    int32_t kind;
    int32_t fraction;  // bits of a real one after its first
    int32_t bf16;      // whether a real one and its reciprocal are rounded to BF16
    float divisor;     // the largest element; in BF16 its reciprocal
    float least, most;
    float zero;        // of a block of zeros
};

// The scales of rows, and their reciprocals.
struct RowScales {
    const float *values, *reciprocals;
};

// Patterns of the largest magnitudes of rows (rows,), infinities and NaN among them.
inline void largest_of_rows(const uint32_t* x, int64_t rows, int64_t length, int64_t threads,
                            uint32_t* out) {
    share(rows, std::min(threads, rows * length / SHARE), [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) {
            uint32_t top = 0;
            for (int64_t i = 0; i < length; ++i) top = std::max(top, x[row * length + i] & MAGNITUDE);
            out[row] = top;
        }
    });
}

constexpr int BLOCKS = 32;  // worked on at a time

// A value rounded to `fraction` bits after its leading one, ties to even.
inline float rounded_real(float x, int fraction) {
    const int drop = 23 - fraction;
    const uint32_t below = (1u << drop) - 1;
    const auto bits = bits_of<uint32_t>(x);
    const uint32_t up = (below >> 1) + (bits >> drop & below & 1);
    return bits_of<float>((bits + up) & ~below);
}

constexpr int BF16_FRACTION = 7;

// The nearest number of a real scale.
inline float rounded_scale(const Scale& s, float x) {
    return rounded_real(std::min(std::max(x, s.least), s.most), s.fraction);
}

// A real scale before it is held to its numbers.
inline float quotient(const Scale& s, float top, float row) {
    return s.bf16 ? rounded_real(top * s.divisor, BF16_FRACTION) : top / s.divisor / row;
}

// The scales of some blocks with these largest magnitudes, in a row of this scale.
inline void block_scales(const Scale& s, const float* top, float row, float* out) {
    if (s.kind == NONE) {
        std::fill_n(out, BLOCKS, 1.0f);
    } else if (s.kind == INTEGER) {
        const double exact = static_cast<double>(row) * s.divisor, least = s.least, most = s.most;
        for (int k = 0; k < BLOCKS; ++k)
            out[k] = static_cast<float>(std::min(std::max(std::ceil(top[k] / exact), least), most));
    } else {
        for (int k = 0; k < BLOCKS; ++k)
            out[k] = top[k] == 0 ? s.zero : rounded_scale(s, quotient(s, top[k], row));
    }
}

// Values that blocks stand for, (rows, length).
struct RealValues {
    float* out;

    template <int B>
    void put(const Format& f, const Quantised& x, const uint32_t* bits, float scale, float row_scale,
             int64_t row, int64_t k, int64_t length) const {
        const int count = B ? B : f.block;
        const int64_t at = k * count;
        const double factor = static_cast<double>(scale) * row_scale * power(f.unit);
        constexpr double limit = std::numeric_limits<float>::max();
        const auto fill = [&](float* to) {
#pragma GCC unroll 1
            for (int i = 0; i < count; ++i) {
                double value = signed_zero(f, x.q[i], bits[i]) * factor;  // exact
                if (f.shift_top) value *= bits_of<float>((127 - x.shift[i]) << 23);
                if (f.divisor > 1) value /= f.divisor;  // further from the middle of two FP32 values
                to[i] = static_cast<float>(std::clamp(value, -limit, limit));
            }
        };
        if (at + count <= length) return fill(out + row * length + at);
        float values[MAX_BLOCK];
        fill(values);
        std::memcpy(out + row * length + at, values, 4 * (length - at));
    }
};

// The left operand of products: integers (rows, blocks * block) and factors (rows, blocks).
template <class Lane>
struct RealLanes {
    Lane* lanes;
    double* factors;

    template <int B>
    void put(const Format& f, const Quantised& x, const uint32_t*, float scale, float, int64_t row,
             int64_t k, int64_t length) const {
        const int count = B ? B : f.block;
        const int64_t at = row * groups(length, count) + k;
        Lane part[MAX_BLOCK];
#pragma GCC unroll 1
        for (int i = 0; i < count; ++i) {
            const int32_t up = f.shift_top ? f.shift_top + f.wide_top - x.shift[i] : 0;
            part[i] = to_lane<Lane>(x.q[i] * bits_of<float>((127 + up) << 23));
        }
        std::memcpy(lanes + at * count, part, count * sizeof(Lane));
        factors[at] = scale * power(f.offset);
    }
};

// Magnitudes times a reciprocal in FP32. Zero times an infinite one is no number, and stays 0.
inline float scaled(float x, float reciprocal, float limit) {
    const float held = std::fabs(x) * reciprocal;
    return held > 0 ? std::min(held, limit) : 0;
}

// The reciprocal by which values are multiplied, below that of a row.
inline float reciprocal_of(const Scale& s, float row, float scale) {
    const float found = row / scale;
    return s.bf16 ? rounded_real(found, BF16_FRACTION) : found;
}

// The scale of the rule or another one: the first of the largest merits.
inline float best_scale(const Format& f, const Scale& s, const float* x, int count, float scale,
                        float top, float row, float reciprocal) {
    float others[2] = {scale, scale};
    if (f.choice == FOUR_OVER_SIX) {
        others[0] = rounded_scale(s, quotient(s, top, row) * 1.5f);
    } else if (s.kind == INTEGER) {
        others[0] = std::max(scale - 1, s.least), others[1] = std::min(scale + 1, s.most);
    } else {
        const uint32_t step = 1u << (23 - s.fraction), bits = bits_of<uint32_t>(scale);
        others[0] = std::max(bits_of<float>(bits - step), s.least);
        others[1] = std::min(bits_of<float>(bits + step), s.most);
    }
    constexpr float limit = std::numeric_limits<float>::max();
    const auto of = [&](float other) {
        float values[MAX_BLOCK];
        for (int i = 0; i < count; ++i)
            values[i] = scaled(std::min(std::fabs(x[i]), limit),
                               reciprocal_of(s, reciprocal, other), limit);
        const double found = merit(f, values, count, std::ldexp(1.0, -f.unit));
        return found * other * other;
    };
    float best = scale;
    double most = of(scale);
    for (const float other : others) {
        const double found = of(other);
        if (found > most) best = other, most = found;
    }
    return best;
}

// Shifts of scaled values, and their integers. An infinity is the largest, under shifts that the
// largest FP32 value gives. B, GROUP, WIDE: sizes known when compiled, or 0.
template <int B, int GROUP, int WIDE>
inline void shifted_block(const Format& f, const float* x, float reciprocal, uint32_t* bits,
                          Quantised& out) {
    constexpr float limit = std::numeric_limits<float>::max();
    const int count = B ? B : f.block, group = GROUP ? GROUP : f.group;
    const int wide = WIDE ? WIDE : f.wide_group, each = wide / group;
    for (int i = 0; i < count; ++i) {
        const float value = scaled(std::min(std::fabs(x[i]), limit), reciprocal, limit);
        bits[i] = bits_of<uint32_t>(value) | (bits_of<uint32_t>(x[i]) & ~MAGNITUDE);
    }
    // How far the largest values of groups lie below the largest element.
    int32_t below[MAX_BLOCK], above[MAX_BLOCK];
    for (int k = 0; k < count / group; ++k) {
        uint32_t most = 0;
        for (int i = k * group; i < (k + 1) * group; ++i) most = std::max(most, bits[i] & MAGNITUDE);
        below[k] = f.emax + 127 - static_cast<int32_t>(most >> 23);
    }
    for (int k = 0; k < count / wide; ++k) {
        int32_t least = below[k * each];
        for (int i = 1; i < each; ++i) least = std::min(least, below[k * each + i]);
        above[k] = std::clamp(least, 0, f.wide_top);
    }
    for (int i = 0; i < count; ++i) {
        const int32_t up = above[i / wide];
        out.shift[i] = up + std::clamp(below[i / group] - up, 0, f.shift_top);
    }
    rounded_block<B, true>(f, bits, count, f.unit, out);
    for (int i = 0; i < count; ++i)
        if (std::isinf(x[i])) out.q[i] = std::copysign(f.largest, x[i]);
}

// Entries of values with the signs that zeros have in a table.
template <int B>
inline void entries(const Ladder& table, const float* x, int count, float* to) {
    listed_lanes(table, x, B ? B : count, to);
    if (!table.negative_zero) return;
    const uint32_t minus_zero = table.minus_zero ? ~MAGNITUDE : 0;
    for (int i = 0; i < (B ? B : count); ++i) {
        const uint32_t sign = bits_of<uint32_t>(x[i]) & (x[i] == 0 ? minus_zero : ~MAGNITUDE);
        to[i] = bits_of<float>(bits_of<uint32_t>(to[i]) | sign);
    }
}

// The bits after the point of magnitudes in merits, halved.
constexpr float HALF = 1 << 10;

// The limit of magnitudes in merits.
inline double merit_limit(const Format& f) {
    const auto top = static_cast<int>(bits_of<uint32_t>(f.largest) >> 23) - 127;
    return 8 * HALF * power(top) - 1;
}

// Whether the merit of `second` is larger than that of `first`, by sums of `axs6.golden.choice` in a
// type that holds them. `over` times a magnitude counts it in units, with the bits of a merit.
template <int B, class Sum>
inline bool is_better(const Format& f, const float* x, double over, double most,
                      const float* first, const float* second) {
    const int count = B ? B : f.block;
    Sum total = 0;
#pragma GCC unroll 1
    for (int i = 0; i < count; ++i) {
        const float a = std::fabs(first[i]), b = std::fabs(second[i]);
        const auto whole = static_cast<int32_t>(std::min(x[i] * over, most));
        total += static_cast<Sum>(b - a) * (whole - static_cast<Sum>((a + b) * HALF));
    }
    return total > 0;
}

// Integers in the element of the larger merit, the first where both are equal. An infinity has the
// largest entry, and the merit of the largest value.
template <int B>
inline void selected_block(const Format& f, const float* x, float reciprocal, Quantised& out) {
    constexpr float limit = std::numeric_limits<float>::max();
    const int count = B ? B : f.block;
    const auto unit = static_cast<float>(power(-f.unit));
    alignas(64) float values[MAX_BLOCK], given[MAX_BLOCK], second[MAX_BLOCK];
#pragma GCC unroll 1
    for (int i = 0; i < count; ++i) {
        values[i] = scaled(std::min(std::fabs(x[i]), limit), reciprocal, limit);
        given[i] = std::copysign(std::fabs(x[i]) > limit ? x[i] : values[i] * unit, x[i]);
    }
    entries<B>(f.ladders[0], given, count, out.q);
    entries<B>(f.ladders[1], given, count, second);
    const double over = f.divisor * power(11 - f.unit), most = merit_limit(f);
    const bool narrow = f.largest * most * count < std::numeric_limits<int32_t>::max();
    const bool second_is_better =
        narrow ? is_better<B, int32_t>(f, values, over, most, out.q, second)
               : is_better<B, double>(f, values, over, most, out.q, second);
    const uint32_t better = -static_cast<uint32_t>(second_is_better);  // no branch: not predictable
    for (int i = 0; i < count; ++i) {
        const auto a = bits_of<uint32_t>(out.q[i]), b = bits_of<uint32_t>(second[i]);
        out.q[i] = bits_of<float>(a ^ ((a ^ b) & better));
    }
}

template <int B, class Sink>
void real_block(const Format& f, const Scale& s, float largest, const float* x, float scale,
                const RowScales& scales, int64_t row, int64_t k, int64_t length,
                const Sink& sink) {
    const int count = B ? B : f.block;
    const float reciprocal = reciprocal_of(s, scales.reciprocals[row], scale);
    Quantised found;
    uint32_t bits[MAX_BLOCK];
    if (f.shift_top) {
        if (B == 64 && f.group == 4 && f.wide_group == 8)
            shifted_block<B, 4, 8>(f, x, reciprocal, bits, found);
        else
            shifted_block<B, 0, 0>(f, x, reciprocal, bits, found);
        return sink.template put<B>(f, found, bits, scale, scales.values[row], row, k, length);
    }
    if (f.selected()) {
        selected_block<B>(f, x, reciprocal, found);
        return sink.template put<B>(f, found, bits, scale, scales.values[row], row, k, length);
    }
#pragma GCC unroll 1
    for (int i = 0; i < count; ++i) {
        const float value = scaled(x[i], reciprocal, largest);
        bits[i] = bits_of<uint32_t>(value) | (bits_of<uint32_t>(x[i]) & ~MAGNITUDE);
    }
    rounded_block<B, false>(f, bits, count, f.unit, found);
    sink.template put<B>(f, found, bits, scale, scales.values[row], row, k, length);
}

template <int B, class Sink>
void real_row(const Format& f, const Scale& s, const RowScales& scales, const float* x,
              int64_t length, int64_t row, const Sink& sink) {
    const int64_t count = B ? B : f.block, whole = length / count;
    const float largest = std::ldexp(f.largest, f.unit);
    x += row * length;
    float last[MAX_BLOCK] = {};
    std::memcpy(last, x + whole * count, 4 * (length - whole * count));
    for (int64_t first = 0; first < groups(length, count); first += BLOCKS) {
        const int64_t end = std::min(first + BLOCKS, groups(length, count));
        float tops[BLOCKS] = {}, found[BLOCKS];
        if (s.kind != NONE)
            for (int64_t k = first; k < end; ++k) {
                const float* from = k < whole ? x + k * count : last;
                uint32_t top = 0;
#pragma GCC unroll 1
                for (int i = 0; i < count; ++i)
                    top = std::max(top, bits_of<uint32_t>(from[i]) & MAGNITUDE);
                tops[k - first] = bits_of<float>(std::min(top, INFINITE - 1));
            }
        block_scales(s, tops, scales.values[row], found);
        for (int64_t k = first; k < end; ++k) {
            const float* from = k < whole ? x + k * count : last;
            float scale = found[k - first];
            if (f.choice != MAX)
                scale = best_scale(f, s, from, count, scale, tops[k - first], scales.values[row],
                                   scales.reciprocals[row]);
            real_block<B>(f, s, largest, from, scale, scales, row, k, length, sink);
        }
    }
}

template <class Sink>
void quantise_real(const Format& f, const Scale& s, const RowScales& scales, const float* x,
                   int64_t rows, int64_t length, int64_t threads, const Sink& sink) {
    share(rows, std::min(threads, rows * length / SHARE), [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row)
            if (f.block == 32)
                real_row<32>(f, s, scales, x, length, row, sink);
            else if (f.block == 16)
                real_row<16>(f, s, scales, x, length, row, sink);
            else if (f.block == 64)
                real_row<64>(f, s, scales, x, length, row, sink);
            else
                real_row<0>(f, s, scales, x, length, row, sink);
    });
}

}  // namespace axs6
