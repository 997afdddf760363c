// Dot products that an accumulator adds step by step: what is the same whatever it does in a step.
//
// A product of lanes, or a sum of them under the scales of their blocks, is an integer times
// 2^(exponents + offset). A `Sum` adds those of a step to the accumulators of some rows and a panel.
#pragma once

#include "product.hpp"

namespace axs6 {

struct Accumulator {
    int32_t reduction, term;  // lanes of a step and of a term, whole words of them but one of 1
    int32_t fraction, point;  // bits after the point of a term: those kept, and those of its integer
    int32_t offset;
    int32_t chunk;            // terms whose integer parts a 32-bit integer adds
    int32_t floor;            // whether bits are dropped toward minus infinity
    int32_t zeros;            // whether zeros have exponents that count
    int32_t canceled;         // whether sums of lanes that cancel to 0 have
    int32_t least;            // of the largest exponent of a step
    int32_t fused;
    int32_t output_fraction, output_emin, truncate;
    int32_t minus_zero;       // whether negative results that are rounded to 0 keep their sign
    int32_t promote;          // steps, or 0
    int32_t scaled;           // whether scales of blocks multiply what is promoted
    int32_t narrow;           // whether `TruncatedProduct` has them
    int32_t sum_fraction;     // bits of a sum that is aligned with the accumulator by itself, or 0
    int32_t groups;           // to which the lanes of a step are dealt in turn, each aligned by itself
    int32_t reach;            // how far the exponent of an accumulator that counts may be below
    int32_t highest;          // the largest exponent of a step whose terms are all below 2^128
    int32_t kept;             // whether lanes that are no numbers stay among the others
    int32_t longer;           // whether products of lanes may have more bits than float64
    uint32_t nan;
    double largest;           // of the output
    double normal;            // the smallest result, in pairwise sums, that is not made 0
};

constexpr int8_t NO_FIELD = -64;  // of a zero that does not count; fields are below 63
constexpr int TILE_ROWS = 4;

// What the products by steps read of the right operand.
struct Panelled {
    void* lanes;
    int32_t *fields, *scales;
    uint8_t* special;
};

// 2^exponent, or what is nearest to it within 2^-900 and 2^900.
inline double near_power(int64_t exponent) {
    return power(std::max<int64_t>(-900, std::min<int64_t>(exponent, 900)));
}

// Rows of an operand. A block is NaN where its significand is.
struct Side {
    const float* lanes;         // integers, infinities and NaN (rows, blocks * block)
    const int32_t* exponents;   // sums of the exponent fields of scales (rows, blocks)
    const float* significands;  // of scales, as integers (rows, blocks)
    const double* scales;       // of blocks, where the accumulator multiplies by them
    int64_t rows, blocks, block;
    int64_t fraction;  // exponents of lanes have this much less than integers; large: they are 0

    int64_t length() const { return blocks * block; }

    double value(int64_t row, int64_t lane) const {
        return static_cast<double>(lanes[row * length() + lane]) *
               significands[row * blocks + lane / block];
    }

    int32_t exponent(int64_t row, int64_t lane) const {
        return exponents[row * blocks + lane / block];
    }

    int8_t field(float x, bool zeros) const {
        if (x == 0) return zeros ? 0 : NO_FIELD;
        const int64_t exponent = (bits_of<uint32_t>(x) >> 23 & 255) - 127;
        return static_cast<int8_t>(std::max<int64_t>(exponent - fraction, 0));
    }
};

// Rows side by side, N to a group. The lanes of a step lie by the groups to which they are dealt. What
// is no number is 0 here, and marked, where it is not kept.
template <class Real, int N>
struct Group {
    Real* lanes;        // (groups, length, N)
    int32_t* fields;    // of four lanes in a word (groups, length / 4, N)
    int32_t* scales;    // exponents (groups, blocks, N)
    uint8_t* special;   // (groups, blocks)

    Group at(int64_t group, int64_t length, int64_t blocks) const {
        return {lanes + group * length * N, fields + group * length / 4 * N,
                scales + group * blocks * N, special + group * blocks};
    }

    static Group of(const Panelled& x) {
        return {static_cast<Real*>(x.lanes), x.fields, x.scales, x.special};
    }

    static int64_t place(int64_t lane, const Accumulator& how) {
        if (how.groups == 1) return lane;
        const int64_t own = lane % how.reduction, each = how.reduction / how.groups;
        return lane - own + own % how.groups * each + own / how.groups;
    }

    // Row i of this group.
    void put(const Side& x, int64_t row, int64_t i, const Accumulator& how) const {
        auto* bytes = reinterpret_cast<int8_t*>(fields);
        for (int64_t k = 0; k < x.blocks; ++k) {
            const bool there = row < x.rows;
            scales[k * N + i] = there ? x.exponents[row * x.blocks + k] : 0;
            const Real significand = there ? x.significands[row * x.blocks + k] : 0;
            for (int64_t lane = k * x.block; lane < (k + 1) * x.block; ++lane) {
                float own = there ? x.lanes[row * x.length() + lane] : 0;
                Real value = own * significand;
                if (!std::isfinite(value) && !how.kept) value = own = 0, special[k] = 1;
                const int64_t to = place(lane, how);
                if (value == 0 && !how.zeros) own = 0;  // under a scale of 0 too
                lanes[to * N + i] = value;
                bytes[(to / 4 * N + i) * 4 + to % 4] = x.field(own, how.zeros);
            }
        }
    }
};

// The exact sums of products of some lanes, integers, for R rows and the first C columns of a panel.
template <int R, int C>
inline void integer_products(const double* left, const double* columns, int64_t lanes,
                             __int128 (*sums)[C]) {
    for (int i = 0; i < R; ++i) std::fill_n(sums[i], C, 0);
    for (int64_t l = 0; l < lanes; ++l, left += R, columns += PANEL)
        for (int i = 0; i < R; ++i) {
            const auto own = static_cast<int64_t>(left[i]);
            for (int c = 0; c < C; ++c)
                sums[i][c] += static_cast<__int128>(own) * static_cast<int64_t>(columns[c]);
        }
}

// Values that `whole` makes integers of, in units of so many bits below their leading one; this is
// taken for 2^emin where it is less.
template <class Whole>
inline void rounded(int fraction, int emin, const Whole& whole, double* x) {
    const double least = power(emin);
    const uint64_t less = static_cast<uint64_t>(fraction) << 52;
    constexpr uint64_t FIELD = uint64_t{0x7FF} << 52, TWO = uint64_t{2046} << 52;
    for (int n = 0; n < PANEL; ++n) {
        const double binade = std::max(bits_of<double>(bits_of<uint64_t>(x[n]) & FIELD), least);
        const uint64_t quantum = bits_of<uint64_t>(binade) - less;
        const double y = whole(x[n] * bits_of<double>(TWO - quantum)) * bits_of<double>(quantum);
        x[n] = std::fabs(x[n]) < std::numeric_limits<double>::infinity() ? y : x[n];
    }
}

// Values rounded to the output, to nearest even or toward zero; what is too large is infinite.
inline void round_to_output(const Accumulator& how, double* x) {
    rounded(how.output_fraction, how.output_emin,
            [&](double y) { return how.truncate ? std::trunc(y) : std::nearbyint(y); }, x);
    const double infinity = std::numeric_limits<double>::infinity();
    for (int n = 0; n < PANEL; ++n)
        x[n] = std::fabs(x[n]) > how.largest ? std::copysign(infinity, x[n]) : x[n];
}

// Accumulators that are replaced by sums with them; those that are no numbers stay.
inline void replace(const Accumulator& how, double* x, float* total) {
    constexpr float most = std::numeric_limits<float>::max();
    const double zero = how.minus_zero ? -0.0 : 0.0;  // a negative 0 and it are -0, or 0
    round_to_output(how, x);
    for (int n = 0; n < PANEL; ++n) {
        const auto sum = static_cast<float>(x[n] + zero);
        total[n] = std::fabs(total[n]) <= most ? sum : total[n];
    }
}

// Sum: Real and Column, the types of lanes on the left and on the right; add<R>(left, columns, first, last, total), the accumulators
// after the lanes of a step, and whether a term may be infinite.
template <class Sum>
struct SteppedProduct {
    typedef typename Sum::Real Real;
    typedef Group<typename Sum::Column, PANEL> Columns;

    Side a, b;
    Columns right;
    Accumulator how;
    Finish finish;
    float* y;  // (a.rows, b.rows)

    // The sum of the terms of a step that are no numbers: an infinity, NaN, or 0 without one.
    float special(int64_t row, int64_t column, int64_t first, int64_t last) const {
        float sum = 0;
        for (int64_t lane = first; lane < last; lane += how.term) {
            __int128 integer = 0;
            double term = 0;
            for (int64_t l = lane; l < lane + how.term; ++l) {
                const double left = a.value(row, l), right = b.value(column, l);
                if (!(std::isfinite(left) && std::isfinite(right)))
                    sum += static_cast<float>(left * right);
                else if (how.term == 1)
                    term = product_to_odd(left, right);
                else
                    integer += static_cast<__int128>(static_cast<int64_t>(left)) *
                               static_cast<int64_t>(right);
            }
            if (how.term > 1) term = to_odd(integer);
            term *= near_power(a.exponent(row, lane) + b.exponent(column, lane) + how.offset);
            if (how.sum_fraction && std::fabs(term) >= power(128))
                sum += std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(term));
        }
        return sum;
    }

    static bool any(const uint8_t* special, int64_t first, int64_t last, int64_t block) {
        uint8_t found = 0;
        for (int64_t k = first / block; k < groups(last, block); ++k) found |= special[k];
        return found;
    }

    // R rows, from `row` on and `count` of them there, by a panel.
    template <int R>
    void tile(const Group<Real, R>& left, int64_t row, int64_t count, int64_t panel, Sum& sum) const {
        const Columns columns = right.at(panel, a.length(), a.blocks);
        const int64_t width = std::min<int64_t>(PANEL, b.rows - panel * PANEL);
        alignas(64) float total[R][PANEL] = {}, promoted[R][PANEL] = {};
        int64_t number = 0;
        for (int64_t first = 0; first < a.length(); first += how.reduction) {
            const int64_t last = std::min(first + how.reduction, a.length());
            float before[R][PANEL];
            std::memcpy(before, total, sizeof before);
            const bool infinite = sum.template add<R>(left, columns, first, last, total);
            const bool specials = infinite || any(left.special, first, last, a.block) ||
                                  any(columns.special, first, last, a.block);
            for (int64_t i = 0; specials && i < count; ++i)
                for (int64_t n = 0; n < width; ++n) {
                    const float found = special(row + i, panel * PANEL + n, first, last);
                    if (found != 0) total[i][n] = before[i][n] + found;
                }
            if (how.promote && ++number % how.promote == 0)
                promote_rows<R>(row, panel, first / a.block, total, promoted);
        }
        if (how.promote) {
            if (!how.scaled) promote_rows<R>(row, panel, 0, total, promoted);
            std::memcpy(total, promoted, sizeof total);
        }
        for (int i = 0; i < count; ++i) put(row + i, panel, PANEL, total[i]);
    }

    // Write some sums of a row, from the first column of a panel on.
    void put(int64_t row, int64_t panel, int64_t columns, const float* total) const {
        const int64_t first = panel * PANEL;
        for (int64_t n = 0; n < std::min(columns, b.rows - first); ++n) {
            const float x = finish.of(total[n], row, first + n);
            y[row * b.rows + first + n] = x == x ? x : bits_of<float>(how.nan);
        }
    }

    template <int R>
    void promote_rows(int64_t row, int64_t panel, int64_t k, float (*total)[PANEL],
                      float (*promoted)[PANEL]) const {
        double scales[PANEL];
        scales_of(panel, PANEL, k, scales);
        for (int64_t i = 0; i < R; ++i)
            promote(row + i, k, PANEL, scales, 1.0f, total[i], promoted[i]);
    }

    // The scales of block k of columns from a panel on: 1 where none multiply what is promoted.
    void scales_of(int64_t panel, int64_t columns, int64_t k, double* out) const {
        for (int64_t n = 0; n < columns; ++n) {
            const int64_t column = panel * PANEL + n;
            out[n] = how.scaled && column < b.rows ? b.scales[column * b.blocks + k] : 1;
        }
    }

    // Add the accumulators of a row, in a unit, to others, and start again at 0. The product of two
    // scales is rounded, and that of it and an accumulator is not.
    void promote(int64_t row, int64_t k, int64_t columns, const double* scales, float unit,
                 float* total, float* promoted) const {
        const double own = how.scaled && row < a.rows ? a.scales[row * a.blocks + k] : 1;
        for (int64_t n = 0; n < columns; ++n) {
            const auto factor = static_cast<float>(own * scales[n]);
            promoted[n] = std::fma(total[n] * unit, factor, promoted[n]), total[n] = 0;
        }
    }

    // Rows (first, count) by columns of the panels (from, to).
    template <int R>
    void rows(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const int64_t length = a.length(), each = groups(count, R);
        std::vector<Real> lanes(each * length * R);
        std::vector<int32_t> fields(each * length / 4 * R), scales(each * a.blocks * R);
        std::vector<uint8_t> special(each * a.blocks);
        const Group<Real, R> left{lanes.data(), fields.data(), scales.data(), special.data()};
        for (int64_t i = 0; i < each * R; ++i)
            left.at(i / R, length, a.blocks).put(a, i < count ? first + i : a.rows, i % R, how);
        Sum sum(how, a.block);
        for (int64_t panel = from; panel < to; ++panel)
            for (int64_t i = 0; i < each; ++i)
                tile<R>(left.at(i, length, a.blocks), first + i * R,
                        std::min<int64_t>(R, count - i * R), panel, sum);
    }

    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        count == 1 ? rows<1>(first, count, from, to) : rows<TILE_ROWS>(first, count, from, to);
    }
};

// The right operand, by panels.
template <class Column>
inline void pack_stepped(const Side& x, const Group<Column, PANEL>& out, const Accumulator& how,
                         int64_t panel) {
    const auto group = out.at(panel, x.length(), x.blocks);
    for (int64_t i = 0; i < PANEL; ++i) group.put(x, panel * PANEL + i, i, how);
}

}  // namespace axs6
