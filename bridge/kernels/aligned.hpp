// Dot products whose terms are aligned to the largest exponent of a step, as in tensor cores.
//
// A term is an integer V times 2^(exponents + offset): a product of two lanes, with exponents of
// their own, or a sum of products of lanes under the scales of their blocks. V is exact in Real.
// Its bits that are kept are the integer part of V times a power of two, which is exact too, and
// sums of integer parts are exact. Each sum is then rounded once, in float64.
#pragma once

#include "product.hpp"

namespace axs6 {

struct Accumulator {
    int32_t reduction, term;  // lanes of a step and of a term, whole words of them but one of 1
    int32_t fraction, point;  // bits after the point of a term: those kept, and those of V
    int32_t offset;
    int32_t chunk;            // terms whose integer parts a 32-bit integer adds
    int32_t floor;            // whether bits are dropped toward minus infinity
    int32_t zeros;            // whether zeros have exponents that count
    int32_t canceled;         // whether sums of lanes that cancel to 0 have
    int32_t least;            // of the largest exponent of a step
    int32_t fused;
    int32_t output_fraction, output_emin, truncate;
    int32_t promote;          // steps, or 0
    int32_t scaled;           // whether scales of blocks multiply what is promoted
    int32_t narrow;           // whether `TruncatedProduct` has them
    uint32_t nan;
    double largest;           // of the output
};

constexpr int32_t NOTHING = -(1 << 18);  // the exponent of what does not count
constexpr int8_t NO_FIELD = -64;         // of a zero that does not count; fields are below 63
constexpr int TILE_ROWS = 4;

// Rows of an operand. A block is NaN where its significand is.
struct Side {
    const float* lanes;         // integers, infinities and NaN (rows, blocks * block)
    const int32_t* exponents;   // sums of the exponent fields of scales (rows, blocks)
    const float* significands;  // of scales, as integers (rows, blocks)
    const double* scales;       // of blocks, where the accumulator multiplies by them
    int64_t rows, blocks, block;
    int64_t fraction;  // exponents of lanes have this much less than integers; large: they are 0

    int64_t length() const { return blocks * block; }

    float value(int64_t row, int64_t lane) const {
        return lanes[row * length() + lane] * significands[row * blocks + lane / block];
    }

    int8_t field(float x, bool zeros) const {
        if (x == 0) return zeros ? 0 : NO_FIELD;
        const int64_t exponent = (bits_of<uint32_t>(x) >> 23 & 255) - 127;
        return static_cast<int8_t>(std::max<int64_t>(exponent - fraction, 0));
    }
};

// Rows side by side, N to a group. What is no number is 0 here, and marked.
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

    // Row i of this group.
    void put(const Side& x, int64_t row, int64_t i, bool zeros) const {
        auto* bytes = reinterpret_cast<int8_t*>(fields);
        for (int64_t k = 0; k < x.blocks; ++k) {
            const bool there = row < x.rows;
            scales[k * N + i] = there ? x.exponents[row * x.blocks + k] : 0;
            const float significand = there ? x.significands[row * x.blocks + k] : 0;
            for (int64_t lane = k * x.block; lane < (k + 1) * x.block; ++lane) {
                float own = there ? x.lanes[row * x.length() + lane] : 0, value = own * significand;
                if (!std::isfinite(value)) value = own = 0, special[k] = 1;
                lanes[lane * N + i] = value;
                bytes[(lane / 4 * N + i) * 4 + lane % 4] = x.field(own, zeros);
            }
        }
    }
};

// Vectors of LANES outputs whose terms are of type Real.
template <class Real>
struct Vectors;

template <>
struct Vectors<float> {
    typedef Floats Values;
    typedef Ints Exponents;
    typedef Ints Wholes;
    static constexpr int LANES = W, LOWEST = -100, HIGHEST = 126;

    static Floats powers(Ints exponents) { return (Floats)((exponents + 127) << 23); }

    template <bool FLOOR>
    static Ints whole(Floats x) {
        const Ints kept = __builtin_convertvector(x, Ints);
        return FLOOR ? kept + (__builtin_convertvector(kept, Floats) > x) : kept;
    }
};

template <>
struct Vectors<double> {
    typedef Doubles Values;
    typedef int32_t Exponents __attribute__((vector_size(4 * DOUBLES)));
    typedef Doubles Wholes;
    static constexpr int LANES = DOUBLES, LOWEST = -400, HIGHEST = 1000;

    static Doubles powers(Exponents exponents) {
        typedef int64_t Longs __attribute__((vector_size(8 * DOUBLES)));
        return (Doubles)(__builtin_convertvector(exponents + 1023, Longs) << 52);
    }

    template <bool FLOOR>
    static Doubles whole(Doubles x) {
        return FLOOR ? floored(x) : truncated(x);
    }
};

// Values rounded to the output, to nearest even or toward zero; what is too large is infinite.
inline void round_to_output(const Accumulator& how, double* x) {
    const double least = std::ldexp(1, how.output_emin);
    const uint64_t less = static_cast<uint64_t>(how.output_fraction) << 52;
    constexpr uint64_t FIELD = uint64_t{0x7FF} << 52, TWO = uint64_t{2046} << 52;
    const double infinity = std::numeric_limits<double>::infinity();
    for (int n = 0; n < PANEL; ++n) {
        const double binade = std::max(bits_of<double>(bits_of<uint64_t>(x[n]) & FIELD), least);
        const uint64_t quantum = bits_of<uint64_t>(binade) - less;
        const double scaled = x[n] * bits_of<double>(TWO - quantum);
        const double kept = how.truncate ? std::trunc(scaled) : std::nearbyint(scaled);
        const double y = kept * bits_of<double>(quantum);
        const double limited = std::fabs(y) > how.largest ? std::copysign(infinity, y) : y;
        x[n] = std::fabs(x[n]) < infinity ? limited : x[n];
    }
}

// The accumulators after a step of sums times 2^(top - fraction).
inline void after_step(const Accumulator& how, const int32_t* top, const double* sums, float* total) {
    double x[PANEL];
    for (int n = 0; n < PANEL; ++n) {
        const int64_t power = std::max(-900, std::min(how.fraction - top[n], 900));
        const double own = total[n] * bits_of<double>((1023 + power) << 52);
        const double kept = how.floor ? std::floor(own) : std::trunc(own);
        const double sum = how.fused ? sums[n] + kept : sums[n];
        x[n] = sum * bits_of<double>((1023 - power) << 52);
    }
    round_to_output(how, x);
    if (how.fused) {
        constexpr float most = std::numeric_limits<float>::max();
        for (int n = 0; n < PANEL; ++n)
            total[n] = !(std::fabs(total[n]) <= most) ? total[n]
                       : x[n] == 0                    ? 0.0f
                                                      : static_cast<float>(x[n]);
        return;
    }
    for (int n = 0; n < PANEL; ++n) x[n] = sum_to_odd(total[n], static_cast<float>(x[n]));
    round_to_output(how, x);
    for (int n = 0; n < PANEL; ++n) total[n] = static_cast<float>(x[n]);
}

template <class Real>
struct AlignedProduct {
    typedef Vectors<Real> V;
    typedef typename V::Values Values;
    typedef typename V::Exponents Exponents;
    typedef typename V::Wholes Wholes;
    typedef int8_t Bytes __attribute__((vector_size(4 * V::LANES)));
    static constexpr int LANES = V::LANES;

    Side a, b;
    Group<float, PANEL> right;
    Accumulator how;
    Finish finish;
    float* y;  // (a.rows, b.rows)

    template <class Vector, class T>
    static Vector get(const T* from) {
        typedef Vector At __attribute__((aligned(4), may_alias));
        return *reinterpret_cast<const At*>(from);
    }

    static Values columns_at(const float* from) {
        typedef float Some __attribute__((vector_size(4 * LANES)));
        return __builtin_convertvector(get<Some>(from), Values);
    }

    template <class Vector>
    static Vector larger(Vector x, Vector y) {
        return x > y ? x : y;
    }

    int64_t part() const { return std::min<int64_t>(a.block, how.reduction); }

    // Largest sums of the fields of two lanes, for R rows; `words` of them.
    template <int R>
    static void largest_fields(const int32_t* left, const int32_t* columns, int64_t words,
                               Exponents* out) {
        Bytes most[R];
        for (int i = 0; i < R; ++i) most[i] = Bytes{} + int8_t{-128};
        for (int64_t w = 0; w < words; ++w, left += R, columns += PANEL) {
            const Bytes fields = get<Bytes>(columns);
            for (int i = 0; i < R; ++i)
                most[i] = larger(most[i], fields + (Bytes)(Exponents{} + left[i]));
        }
        for (int i = 0; i < R; ++i) {
            const Exponents x = (Exponents)most[i];
            out[i] = larger(larger(x << 24 >> 24, x << 16 >> 24), larger(x << 8 >> 24, x >> 24));
        }
    }

    // The exact sums of the products of the lanes of a term.
    template <int R>
    void term(const Real* left, const float* columns, Values* sum) const {
        for (int i = 0; i < R; ++i) sum[i] = Values{};
        for (int64_t l = 0; l < how.term; ++l, left += R, columns += PANEL) {
            const Values x = columns_at(columns);
            for (int i = 0; i < R; ++i) sum[i] += x * left[i];
        }
    }

    // Where a product of the lanes of a term is not 0: the sums, which are 0 somewhere, of squares.
    template <int R>
    void products(const Real* left, const float* columns, Values* sum) const {
        for (int i = 0; i < R; ++i) sum[i] = Values{};
        for (int64_t l = 0; l < how.term; ++l, left += R, columns += PANEL) {
            const Values x = columns_at(columns);
            for (int i = 0; i < R; ++i) sum[i] += (x * left[i]) * (x * left[i]);
        }
    }

    template <int R>
    static bool any_zero(const Values* x) {
        bool found = false;
        for (int i = 0; i < R; ++i)
            for (int c = 0; c < LANES; ++c) found |= x[i][c] == 0;
        return found;
    }

    // A step of the lanes (first, last), for the columns from n on.
    template <int R, bool FLOOR>
    void step(const Group<Real, R>& left, const Group<float, PANEL>& columns, int64_t first,
              int64_t last, int n, const float (*total)[PANEL], int32_t (*tops)[PANEL],
              double (*sums)[PANEL], Values* values) const {
        Exponents top[R], scales[R];
        for (int i = 0; i < R; ++i) top[i] = Exponents{} + NOTHING;
        for (int64_t lane = first, t = 0; lane < last; lane += part()) {
            const int64_t k = lane / a.block;
            for (int i = 0; i < R; ++i)
                scales[i] = get<Exponents>(columns.scales + k * PANEL + n) + left.scales[k * R + i];
            if (how.term == 1) {
                Exponents most[R];
                largest_fields<R>(left.fields + lane / 4 * R, columns.fields + lane / 4 * PANEL + n,
                                  part() / 4, most);
                for (int i = 0; i < R; ++i)
                    top[i] = larger(top[i], most[i] < 0 ? Exponents{} + NOTHING : most[i] + scales[i]);
                continue;
            }
            for (int64_t l = lane; l < lane + part(); l += how.term, ++t) {
                Values* each = values + t * R;
                term<R>(left.lanes + l * R, columns.lanes + l * PANEL + n, each);
                Values squares[R];
                const bool look = how.canceled && any_zero<R>(each);
                if (look) products<R>(left.lanes + l * R, columns.lanes + l * PANEL + n, squares);
                for (int i = 0; i < R; ++i) {
                    const Values counted = look ? squares[i] : each[i];
                    const auto some = __builtin_convertvector(counted != 0, Exponents);
                    top[i] = larger(top[i], some | -how.zeros ? scales[i] : Exponents{} + NOTHING);
                }
            }
        }
        for (int i = 0; i < R; ++i) {
            top[i] += how.offset + how.point;
            if (how.fused) top[i] = larger(top[i], own_exponents(total[i] + n));
            top[i] = larger(top[i], Exponents{} + how.least);
            std::memcpy(tops[i] + n, &top[i], sizeof(Exponents));
        }
        for (int64_t lane = first, t = 0; lane < last; lane += part()) {
            const int64_t k = lane / a.block;
            Values powers[R];
            for (int i = 0; i < R; ++i) {
                Exponents power = get<Exponents>(columns.scales + k * PANEL + n) - top[i] +
                                  (left.scales[k * R + i] + how.offset + how.fraction);
                power = larger(power, Exponents{} + V::LOWEST);
                powers[i] = V::powers(-larger(-power, Exponents{} - V::HIGHEST));
            }
            const int64_t each = how.term == 1 ? how.chunk : how.chunk * how.term;
            for (int64_t l = lane; l < lane + part(); l += each) {
                Wholes whole[R] = {};
                if (how.term == 1) {
                    const Real* row = left.lanes + l * R;
                    const float* column = columns.lanes + l * PANEL + n;
#pragma GCC unroll 4
                    for (int64_t j = 0; j < each; ++j, row += R, column += PANEL) {
                        const Values x = columns_at(column);
                        for (int i = 0; i < R; ++i)
                            whole[i] += V::template whole<FLOOR>(x * row[i] * powers[i]);
                    }
                } else {
                    const int64_t end = std::min(t + how.chunk, t + part() / how.term);
                    for (; t < end; ++t)
                        for (int i = 0; i < R; ++i)
                            whole[i] += V::template whole<FLOOR>(values[t * R + i] * powers[i]);
                }
                for (int i = 0; i < R; ++i)
                    for (int c = 0; c < LANES; ++c) sums[i][n + c] += whole[i][c];
            }
        }
    }

    // Exponents of accumulators, as those of terms.
    Exponents own_exponents(const float* total) const {
        const Exponents bits = get<Exponents>(total);
        const Exponents field = larger(bits >> 23 & 255, Exponents{} + 1) - 127;
        const Exponents exponent = larger(field, Exponents{} + how.output_emin);
        return ((bits << 1) == 0) & (how.floor - 1) ? Exponents{} + NOTHING : exponent;
    }

    // The sum of the products of a step that are no numbers: an infinity, NaN, or 0 without one.
    float special(int64_t row, int64_t column, int64_t first, int64_t last) const {
        float sum = 0;
        for (int64_t lane = first; lane < last; ++lane) {
            const float left = a.value(row, lane), right = b.value(column, lane);
            if (!std::isfinite(left) || !std::isfinite(right)) sum += left * right;
        }
        return sum;
    }

    static bool any(const uint8_t* special, int64_t first, int64_t last, int64_t block) {
        uint8_t found = 0;
        for (int64_t k = first / block; k < groups(last, block); ++k) found |= special[k];
        return found;
    }

    // R rows, from `row` on and `count` of them there, by a panel.
    template <int R, bool FLOOR>
    void tile(const Group<Real, R>& left, int64_t row, int64_t count, int64_t panel,
              Values* values) const {
        const Group<float, PANEL> columns = right.at(panel, a.length(), a.blocks);
        const int64_t width = std::min<int64_t>(PANEL, b.rows - panel * PANEL);
        alignas(64) float total[R][PANEL] = {}, promoted[R][PANEL] = {};
        int64_t number = 0;
        for (int64_t first = 0; first < a.length(); first += how.reduction) {
            const int64_t last = std::min(first + how.reduction, a.length());
            alignas(64) int32_t tops[R][PANEL];
            alignas(64) double sums[R][PANEL] = {};
            for (int n = 0; n < PANEL; n += LANES)
                step<R, FLOOR>(left, columns, first, last, n, total, tops, sums, values);
            const bool specials = any(left.special, first, last, a.block) ||
                                  any(columns.special, first, last, a.block);
            for (int i = 0; i < R; ++i) {
                float before[PANEL];
                std::memcpy(before, total[i], sizeof before);
                after_step(how, tops[i], sums[i], total[i]);
                for (int64_t n = 0; specials && i < count && n < width; ++n) {
                    const float found = special(row + i, panel * PANEL + n, first, last);
                    if (found != 0) total[i][n] = before[n] + found;
                }
            }
            if (!how.promote || ++number % how.promote) continue;
            if (how.scaled)
                scale<R>(row, count, panel, first / a.block, total, promoted);
            else
                promote(total[0], promoted[0], R);
        }
        if (how.promote) {
            if (!how.scaled) promote(total[0], promoted[0], R);
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

    static void promote(float* total, float* promoted, int rows) {
        for (int n = 0; n < rows * PANEL; ++n) promoted[n] += total[n], total[n] = 0;
    }

    // As `promote`, for block k: the product of its scales is rounded, and that of it and the sum not.
    template <int R>
    void scale(int64_t row, int64_t count, int64_t panel, int64_t k, float (*total)[PANEL],
               float (*promoted)[PANEL]) const {
        const int64_t width = std::min<int64_t>(PANEL, b.rows - panel * PANEL);
        double columns[PANEL] = {};
        for (int64_t n = 0; n < width; ++n)
            columns[n] = b.scales[(panel * PANEL + n) * b.blocks + k];
        for (int64_t i = 0; i < R; ++i) {
            const double own = i < count ? a.scales[(row + i) * a.blocks + k] : 0;
            for (int n = 0; n < PANEL; ++n) {
                const auto factor = static_cast<float>(own * columns[n]);
                promoted[i][n] = std::fma(total[i][n], factor, promoted[i][n]), total[i][n] = 0;
            }
        }
    }

    // Rows (first, count) by columns of the panels (from, to).
    template <int R, bool FLOOR>
    void rows(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const int64_t length = a.length(), each = groups(count, R);
        std::vector<Real> lanes(each * length * R);
        std::vector<int32_t> fields(each * length / 4 * R), scales(each * a.blocks * R);
        std::vector<uint8_t> special(each * a.blocks);
        const Group<Real, R> left{lanes.data(), fields.data(), scales.data(), special.data()};
        for (int64_t i = 0; i < each * R; ++i)
            left.at(i / R, length, a.blocks)
                .put(a, i < count ? first + i : a.rows, i % R, how.zeros);
        // An array of vectors, aligned as they are.
        const int64_t terms = how.term == 1 ? 0 : how.reduction / how.term;
        std::vector<Real> storage(terms * R * LANES + LANES);
        auto* values = reinterpret_cast<Values*>(
            groups(reinterpret_cast<intptr_t>(storage.data()), sizeof(Values)) * sizeof(Values));
        for (int64_t panel = from; panel < to; ++panel)
            for (int64_t i = 0; i < each; ++i)
                tile<R, FLOOR>(left.at(i, length, a.blocks), first + i * R,
                               std::min<int64_t>(R, count - i * R), panel, values);
    }

    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        if (how.floor)
            count == 1 ? rows<1, true>(first, count, from, to)
                       : rows<TILE_ROWS, true>(first, count, from, to);
        else
            count == 1 ? rows<1, false>(first, count, from, to)
                       : rows<TILE_ROWS, false>(first, count, from, to);
    }
};

// The right operand, by panels.
inline void pack_aligned(const Side& x, const Group<float, PANEL>& out, bool zeros, int64_t panel) {
    const auto group = out.at(panel, x.length(), x.blocks);
    for (int64_t i = 0; i < PANEL; ++i) group.put(x, panel * PANEL + i, i, zeros);
}

}  // namespace axs6
