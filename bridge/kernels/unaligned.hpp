// Sums of steps without alignment, as in matrix cores: exact, and in pairs.
//
// Products of two lanes are exact in float64.
#pragma once

#include "stepped.hpp"

namespace axs6 {

// Products of lanes under the same scales, and the accumulator, added exactly and rounded once.
class ExactSum {
    Accumulator how_;
    int64_t block_;

    // a + b + c to within the last bit of float64, where float64 holds c and what a + b loses.
    static double sum_to_odd(double a, double b, double c) {
        const double both = a + b, sum = both + c;
        const double lost = axs6::sum_to_odd(lost_in(both, c, sum), lost_in(a, b, both));
        return axs6::sum_to_odd(sum, lost);
    }

public:
    typedef float Real;

    ExactSum(const Accumulator& how, int64_t block) : how_(how), block_(block) {}

    template <int R>
    bool add(const Group<float, R>& left, const Group<float, PANEL>& columns, int64_t first,
             int64_t last, float (*total)[PANEL]) {
        const int64_t k = first / block_;
        for (int i = 0; i < R; ++i) {
            double sums[PANEL] = {}, lost[PANEL] = {};
            for (int64_t lane = first; lane < last; ++lane) {
                const double own = left.lanes[lane * R + i];
#pragma GCC unroll 1
                for (int n = 0; n < PANEL; ++n) {
                    const double product = own * columns.lanes[lane * PANEL + n];
                    const double sum = sums[n] + product;
                    lost[n] += lost_in(sums[n], product, sum), sums[n] = sum;
                }
            }
            for (int n = 0; n < PANEL; ++n) {
                const double unit =
                    power(left.scales[k * R + i] + columns.scales[k * PANEL + n] + how_.offset);
                sums[n] = sum_to_odd(sums[n] * unit, lost[n] * unit, total[i][n]) + 0.0;
            }
            replace(how_, sums, total[i]);
        }
        return false;
    }
};

// Products in FP32, of which neighbours are added until one is left, and this to the accumulator.
class PairwiseSum {
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

public:
    typedef float Real;

    PairwiseSum(const Accumulator& how, int64_t block)
        : how_(how), block_(block), values_(how.reduction * PANEL) {}

    template <int R>
    bool add(const Group<float, R>& left, const Group<float, PANEL>& columns, int64_t first,
             int64_t last, float (*total)[PANEL]) {
        float* values = values_.data();
        for (int i = 0; i < R; ++i) {
            for (int64_t lane = first; lane < last; ++lane) {
                const int64_t k = lane / block_;
                const double own = left.lanes[lane * R + i];
                for (int n = 0; n < PANEL; ++n) {
                    const double unit =
                        power(left.scales[k * R + i] + columns.scales[k * PANEL + n] + how_.offset);
                    const double product = own * columns.lanes[lane * PANEL + n] * unit;
                    values[(lane - first) * PANEL + n] = normal(static_cast<float>(product));
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
