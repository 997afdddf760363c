// Sums whose terms are aligned to the largest exponent of a step, as in tensor cores.
//
// A term is an integer V times 2^(exponents + offset): a product of two lanes, with exponents of
// their own, or a sum of products of lanes under the scales of their blocks. V is exact in Real.
// Its bits that are kept are the integer part of V times a power of two, which is exact too, and
// sums of integer parts are exact. Each sum is then rounded once, in float64.
#pragma once

#include "stepped.hpp"

namespace axs6 {

constexpr int32_t NOTHING = -(1 << 18);  // the exponent of what does not count

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

// The accumulators after a step of sums times 2^(top - fraction).
inline void after_step(const Accumulator& how, const int32_t* top, const double* sums, float* total) {
    double x[PANEL];
    for (int n = 0; n < PANEL; ++n) {
        const double own = total[n] * near_power(how.fraction - top[n]);
        const double kept = how.floor ? std::floor(own) : std::trunc(own);
        const double sum = how.fused ? sums[n] + kept : sums[n];
        x[n] = sum * near_power(top[n] - how.fraction);
    }
    if (how.fused) return replace(how, x, total);
    round_to_output(how, x);
    for (int n = 0; n < PANEL; ++n) x[n] = sum_to_odd(total[n], static_cast<float>(x[n]));
    round_to_output(how, x);
    for (int n = 0; n < PANEL; ++n) total[n] = static_cast<float>(x[n]);
}

// The same, where sums and accumulators are aligned in a second place, toward minus infinity.
inline void after_sum(const Accumulator& how, const int32_t* top, const double* sums, float* total) {
    const int32_t more = how.sum_fraction + 1 - how.fraction;
    const double unit = power(more);
    double x[PANEL];
    for (int n = 0; n < PANEL; ++n) {
        const int32_t field = std::max(bits_of<int32_t>(total[n]) >> 23 & 255, 1) - 127;
        const int32_t own = std::max(field, how.output_emin), largest = std::max(top[n], own);
        const double kept = std::floor(total[n] * near_power(how.fraction - largest));
        const double moved = std::floor(sums[n] * near_power(more - (largest - top[n])));
        const double sum = moved + kept * (own < largest - how.reach ? 0.0 : unit);
        x[n] = sum * near_power(largest - how.sum_fraction - 1);
    }
    rounded(how.sum_fraction, how.output_emin, [](double y) { return std::floor(y); }, x);
    replace(how, x, total);
}

// Sums of a group of lanes, joined with those of others at the largest of their exponents.
inline void join(const int32_t* top, const double* sums, int32_t* tops, double* out) {
    for (int n = 0; n < PANEL; ++n) {
        const int32_t largest = std::max(tops[n], top[n]);
        out[n] = std::floor(out[n] * near_power(tops[n] - largest)) +
                 std::floor(sums[n] * near_power(top[n] - largest));
        tops[n] = largest;
    }
}

// LONGER: terms that may have more bits than Real are read to within the last bit of it, which is far
// below those that are kept.
template <class Lane, bool FLOOR, bool LONGER = false>
class AlignedSum {
public:
    typedef Lane Real;
    typedef std::conditional_t<LONGER, double, float> Column;

private:
    typedef Vectors<Real> V;
    typedef typename V::Values Values;
    typedef typename V::Exponents Exponents;
    typedef typename V::Wholes Wholes;
    typedef int8_t Bytes __attribute__((vector_size(4 * V::LANES)));
    static constexpr int LANES = V::LANES;

    Accumulator how_;
    int64_t block_;
    std::vector<Values> values_;  // terms of a step, for the rows of a tile

    template <class Vector, class T>
    static Vector get(const T* from) {
        typedef Vector At __attribute__((aligned(4), may_alias));
        return *reinterpret_cast<const At*>(from);
    }

    static Values columns_at(const Column* from) {
        typedef Column Some __attribute__((vector_size(sizeof(Column) * LANES)));
        return __builtin_convertvector(get<Some>(from), Values);
    }

    static Values product(Values columns, Real own) {
        if constexpr (LONGER)
            return products_to_odd(columns, Values{} + own);
        else
            return columns * own;
    }

    template <class Vector>
    static Vector larger(Vector x, Vector y) {
        return x > y ? x : y;
    }

    int64_t part() const {
        return std::min<int64_t>(block_, how_.reduction / how_.groups);
    }

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

    // The sums of the products of the lanes of a term.
    template <int R>
    void term(const Real* left, const Column* columns, Values* sum) const {
        if constexpr (LONGER) return long_term<R>(left, columns, sum);
        for (int i = 0; i < R; ++i) sum[i] = Values{};
        for (int64_t l = 0; l < how_.term; ++l, left += R, columns += PANEL) {
            const Values x = columns_at(columns);
            for (int i = 0; i < R; ++i) sum[i] += x * left[i];
        }
    }

    template <int R>
    void long_term(const Real* left, const Column* columns, Values* sum) const {
        __int128 sums[R][LANES];
        integer_products<R, LANES>(left, columns, how_.term, sums);
        for (int i = 0; i < R; ++i)
            for (int c = 0; c < LANES; ++c) sum[i][c] = to_odd(sums[i][c]);
    }

    // Where a product of the lanes of a term is not 0: the sums, which are 0 somewhere, of squares.
    template <int R>
    void products(const Real* left, const Column* columns, Values* sum) const {
        for (int i = 0; i < R; ++i) sum[i] = Values{};
        for (int64_t l = 0; l < how_.term; ++l, left += R, columns += PANEL) {
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

    // The sums of the lanes (first, last), for the columns from n on.
    template <int R>
    void sum(const Group<Real, R>& left, const Group<Column, PANEL>& columns, int64_t first,
             int64_t last, int n, const float (*total)[PANEL], int32_t (*tops)[PANEL],
             double (*sums)[PANEL]) {
        Values* values = values_.data();
        Exponents top[R], scales[R];
        for (int i = 0; i < R; ++i) top[i] = Exponents{} + NOTHING;
        for (int64_t lane = first, t = 0; lane < last; lane += part()) {
            const int64_t k = lane / block_;
            for (int i = 0; i < R; ++i)
                scales[i] = get<Exponents>(columns.scales + k * PANEL + n) + left.scales[k * R + i];
            if (how_.term == 1) {
                Exponents most[R];
                largest_fields<R>(left.fields + lane / 4 * R, columns.fields + lane / 4 * PANEL + n,
                                  part() / 4, most);
                for (int i = 0; i < R; ++i)
                    top[i] = larger(top[i], most[i] < 0 ? Exponents{} + NOTHING : most[i] + scales[i]);
                continue;
            }
            for (int64_t l = lane; l < lane + part(); l += how_.term, ++t) {
                Values* each = values + t * R;
                term<R>(left.lanes + l * R, columns.lanes + l * PANEL + n, each);
                Values squares[R];
                const bool look = how_.canceled && any_zero<R>(each);
                if (look) products<R>(left.lanes + l * R, columns.lanes + l * PANEL + n, squares);
                for (int i = 0; i < R; ++i) {
                    const Values counted = look ? squares[i] : each[i];
                    const auto some = __builtin_convertvector(counted != 0, Exponents);
                    top[i] = larger(top[i], some | -how_.zeros ? scales[i] : Exponents{} + NOTHING);
                }
            }
        }
        for (int i = 0; i < R; ++i) {
            top[i] += how_.offset + how_.point;
            if (how_.fused && !how_.sum_fraction) top[i] = larger(top[i], own_exponents(total[i] + n));
            top[i] = larger(top[i], Exponents{} + how_.least);
            std::memcpy(tops[i] + n, &top[i], sizeof(Exponents));
        }
        for (int64_t lane = first, t = 0; lane < last; lane += part()) {
            const int64_t k = lane / block_;
            Values powers[R];
            for (int i = 0; i < R; ++i) {
                Exponents power = get<Exponents>(columns.scales + k * PANEL + n) - top[i] +
                                  (left.scales[k * R + i] + how_.offset + how_.fraction);
                power = larger(power, Exponents{} + V::LOWEST);
                powers[i] = V::powers(-larger(-power, Exponents{} - V::HIGHEST));
            }
            const int64_t each = how_.term == 1 ? how_.chunk : how_.chunk * how_.term;
            for (int64_t l = lane; l < lane + part(); l += each) {
                Wholes whole[R] = {};
                if (how_.term == 1) {
                    const Real* row = left.lanes + l * R;
                    const Column* column = columns.lanes + l * PANEL + n;
#pragma GCC unroll 4
                    for (int64_t j = 0; j < each; ++j, row += R, column += PANEL) {
                        const Values x = columns_at(column);
                        for (int i = 0; i < R; ++i)
                            whole[i] += V::template whole<FLOOR>(product(x, row[i]) * powers[i]);
                    }
                } else {
                    const int64_t end = std::min(t + how_.chunk, t + part() / how_.term);
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
        const Exponents exponent = larger(field, Exponents{} + how_.output_emin);
        return ((bits << 1) == 0) & (how_.floor - 1) ? Exponents{} + NOTHING : exponent;
    }

public:
    AlignedSum(const Accumulator& how, int64_t block)
        : how_(how), block_(block),
          values_(how.term == 1 ? 0 : how.reduction / how.term * TILE_ROWS) {}

    template <int R>
    bool add(const Group<Real, R>& left, const Group<Column, PANEL>& columns, int64_t first,
             int64_t last, float (*total)[PANEL]) {
        const int64_t each = how_.groups == 1 ? last - first : how_.reduction / how_.groups;
        alignas(64) int32_t tops[R][PANEL];
        alignas(64) double sums[R][PANEL] = {};
        for (int n = 0; n < PANEL; n += LANES)
            sum<R>(left, columns, first, first + each, n, total, tops, sums);
        for (int64_t from = first + each; from < last; from += each) {
            alignas(64) int32_t top[R][PANEL];
            alignas(64) double others[R][PANEL] = {};
            for (int n = 0; n < PANEL; n += LANES)
                sum<R>(left, columns, from, from + each, n, total, top, others);
            for (int i = 0; i < R; ++i) join(top[i], others[i], tops[i], sums[i]);
        }
        bool infinite = false;
        for (int i = 0; i < R; ++i) {
            for (int n = 0; n < PANEL; ++n) infinite |= tops[i][n] > how_.highest;
            how_.sum_fraction ? after_sum(how_, tops[i], sums[i], total[i])
                              : after_step(how_, tops[i], sums[i], total[i]);
        }
        return infinite;
    }
};

}  // namespace axs6
