// Sums of steps without alignment, as in matrix cores: exact, and in pairs.
//
// Products of two lanes are exact in float64, or else LONGER.
#pragma once

#include "stepped.hpp"

namespace axs6 {

// Products of lanes under the same scales, and the accumulator, added exactly and rounded once.
template <bool LONGER>
class ExactSum {
public:
    typedef std::conditional_t<LONGER, double, float> Real, Column;

private:
    Accumulator how_;
    int64_t block_;

    // a + b + c to within the last bit of float64, where float64 holds c and what a + b loses.
    static double sum_to_odd(double a, double b, double c) {
        const double both = a + b, sum = both + c;
        const double lost = axs6::sum_to_odd(lost_in(both, c, sum), lost_in(a, b, both));
        return axs6::sum_to_odd(sum, lost);
    }

    template <int R>
    static void products(const Real* left, const Column* columns, int64_t lanes,
                         double (*sums)[PANEL], double (*lost)[PANEL]) {
        for (int i = 0; i < R; ++i)
            for (int64_t lane = 0; lane < lanes; ++lane) {
                const double own = left[lane * R + i];
#pragma GCC unroll 1
                for (int n = 0; n < PANEL; ++n) {
                    const double product = own * columns[lane * PANEL + n];
                    const double sum = sums[i][n] + product;
                    lost[i][n] += lost_in(sums[i][n], product, sum), sums[i][n] = sum;
                }
            }
    }

    template <int R>
    static void long_products(const Real* left, const Column* columns, int64_t lanes,
                              double (*sums)[PANEL], double (*lost)[PANEL]) {
        __int128 integers[R][PANEL];
        integer_products<R, PANEL>(left, columns, lanes, integers);
        for (int i = 0; i < R; ++i)
            for (int n = 0; n < PANEL; ++n) {
                constexpr int PART = 42;  // bits, so that float64 holds each of three parts
                constexpr int64_t MASK = (int64_t{1} << PART) - 1;
                const __int128 x = integers[i][n];
                const auto middle = static_cast<double>(static_cast<int64_t>(x >> PART) & MASK);
                const auto top = static_cast<double>(static_cast<int64_t>(x >> 2 * PART));
                const double upper = top * power(2 * PART), next = middle * power(PART);
                sums[i][n] = upper + next;
                lost[i][n] = axs6::sum_to_odd(lost_in(upper, next, sums[i][n]),
                                              static_cast<double>(static_cast<int64_t>(x) & MASK));
            }
    }

public:
    ExactSum(const Accumulator& how, int64_t block) : how_(how), block_(block) {}

    template <int R>
    bool add(const Group<Real, R>& left, const Group<Column, PANEL>& columns, int64_t first,
             int64_t last, float (*total)[PANEL]) {
        const int64_t k = first / block_;
        double sums[R][PANEL] = {}, lost[R][PANEL] = {};
        const Real* lanes = left.lanes + first * R;
        const Column* others = columns.lanes + first * PANEL;
        if constexpr (LONGER)
            long_products<R>(lanes, others, last - first, sums, lost);
        else
            products<R>(lanes, others, last - first, sums, lost);
        for (int i = 0; i < R; ++i) {
            for (int n = 0; n < PANEL; ++n) {
                const double unit =
                    power(left.scales[k * R + i] + columns.scales[k * PANEL + n] + how_.offset);
                sums[i][n] = sum_to_odd(sums[i][n] * unit, lost[i][n] * unit, total[i][n]) + 0.0;
            }
            replace(how_, sums[i], total[i]);
        }
        return false;
    }
};

// Products in FP32, of which neighbours are added until one is left, and this to the accumulator.
template <bool LONGER>
class PairwiseSum {
public:
    typedef std::conditional_t<LONGER, double, float> Real, Column;

private:
    Accumulator how_;
    int64_t block_;
    std::vector<float> values_;  // (reduction, PANEL)

    // Results, with zeros in place of those that are too small.
    float normal(float x) const {
        return std::fabs(x) < how_.normal ? std::copysign(0.0f, x) : x;
    }

    void add(const float* a, const float* b, float* out) const {
        for (int n = 0; n < PANEL; ++n) out[n] = normal(a[n] + b[n]);
    }

    static double product(double x, double y) {
        return LONGER ? product_to_odd(x, y) : x * y;
    }

public:
    PairwiseSum(const Accumulator& how, int64_t block)
        : how_(how), block_(block), values_(how.reduction * PANEL) {}

    template <int R>
    bool add(const Group<Real, R>& left, const Group<Column, PANEL>& columns, int64_t first,
             int64_t last, float (*total)[PANEL]) {
        float* values = values_.data();
        for (int i = 0; i < R; ++i) {
            for (int64_t lane = first; lane < last; ++lane) {
                const int64_t k = lane / block_;
                const double own = left.lanes[lane * R + i];
                for (int n = 0; n < PANEL; ++n) {
                    const double unit =
                        power(left.scales[k * R + i] + columns.scales[k * PANEL + n] + how_.offset);
                    const double exact = product(own, columns.lanes[lane * PANEL + n]) * unit;
                    values[(lane - first) * PANEL + n] = normal(static_cast<float>(exact));
                }
            }
            for (int64_t count = last - first; count > 1; count = groups(count, 2)) {
                for (int64_t pair = 0; pair < count / 2; ++pair)
                    add(values + 2 * pair * PANEL, values + (2 * pair + 1) * PANEL,
                        values + pair * PANEL);
                if (count % 2)
                    std::copy_n(values + (count - 1) * PANEL, PANEL, values + count / 2 * PANEL);
            }
            add(total[i], values, total[i]);
        }
        return false;
    }
};

}  // namespace axs6
