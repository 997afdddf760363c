// Products of floating-point elements: lanes are integers in FP32, NaN and infinities among them.
//
// Times their factor, a power of two or a short number, lanes are float64 values. Where the sum of
// a block's products has at most 53 bits, float64 adds them in any order without an error, and
// treats NaN and infinities as IEEE 754 says; the conversion to FP32 is the one rounding of the
// block. Blocks of wider range than that are added as integers of 128 bits.
#pragma once

#include "product.hpp"

namespace axs6 {

constexpr int DOUBLE_BITS = 53;

typedef double DoublesAt __attribute__((vector_size(8 * DOUBLES), aligned(8), may_alias));
typedef float HalfAt __attribute__((vector_size(4 * DOUBLES), aligned(4), may_alias));
typedef float FloatAt __attribute__((may_alias));

// Bits from the last one to the first one that a block's integers have.
inline int width_of(const float* lanes, int64_t count) {
    uint64_t any = 0;
    for (int64_t i = 0; i < count; ++i)
        if (std::isfinite(lanes[i])) any |= static_cast<uint64_t>(std::fabs(lanes[i]));
    return any ? 64 - __builtin_clzll(any) - __builtin_ctzll(any) : 0;
}

// A panel of the right operand. Its limits are the widths of the widest column in each block.
inline void pack_doubles(const Matrix<float>& x, int64_t panel, const Panels<float>& out) {
    pack_panel(x, panel, out);
    int32_t* widths = out.limits + panel * x.blocks;
    std::fill(widths, widths + x.blocks, 0);
    for (int64_t n = panel * PANEL; n < std::min((panel + 1) * PANEL, x.rows); ++n)
        for (int64_t k = 0; k < x.blocks; ++k)
            widths[k] = std::max(widths[k], width_of(x.at(n, k), x.block));
}

// fp32(sum of products * factor), rounded once.
inline float wide_dot(const float* a, const float* b, int64_t count, double factor) {
    __int128 sum = 0;
    double special = 0;
    for (int64_t i = 0; i < count; ++i)
        if (std::isfinite(a[i]) && std::isfinite(b[i]))
            sum += static_cast<__int128>(static_cast<int64_t>(a[i])) * static_cast<int64_t>(b[i]);
        else
            special += static_cast<double>(a[i]) * b[i];
    if (special != 0) return static_cast<float>(special * factor);
    return static_cast<float>(to_odd(sum) * factor);  // the last bit is far below FP32's
}

struct DoubleProduct {
    Matrix<float> a;
    Panels<float> b;
    Finish finish;
    bool narrow;  // whether no sum has more than 53 bits
    float* y;

    // Lanes of a tile of rows side by side, times their factors.
    struct Left {
        std::vector<double> lanes;  // (tiles, length, DOUBLE_ROWS)
        std::vector<int> widths;    // (tiles, blocks)
    };

    Left expanded(int64_t first, int64_t count) const {
        const int64_t tiles = groups(count, DOUBLE_ROWS), length = a.blocks * a.block;
        Left out{std::vector<double>(tiles * length * DOUBLE_ROWS),
                 std::vector<int>(tiles * a.blocks)};
        for (int64_t r = 0; r < count; ++r)
            for (int64_t k = 0; k < a.blocks; ++k) {
                const int64_t tile = r / DOUBLE_ROWS, i = r % DOUBLE_ROWS;
                const float* lanes = a.at(first + r, k);
                const double factor = a.factor(first + r, k);
                double* to = &out.lanes[(tile * length + k * a.block) * DOUBLE_ROWS + i];
                for (int64_t l = 0; l < a.block; ++l) to[l * DOUBLE_ROWS] = lanes[l] * factor;
                int& width = out.widths[tile * a.blocks + k];
                if (!narrow) width = std::max(width, width_of(lanes, a.block));
            }
        return out;
    }

    // A block of the columns of a panel, (block, PANEL), times their factors.
    void expand_panel(int64_t panel, int64_t k, double* to) const {
        const auto* from = reinterpret_cast<const FloatAt*>(b.words_of(panel, k));
        double factors[PANEL] = {};
        for (int64_t n = 0; n < std::min<int64_t>(PANEL, b.columns - panel * PANEL); ++n)
            factors[n] = b.factor(panel * PANEL + n, k);
        for (int64_t l = 0; l < b.block; ++l)
            for (int n = 0; n < PANEL; ++n) to[l * PANEL + n] = from[l * PANEL + n] * factors[n];
    }

    // R rows from `left` (block, DOUBLE_ROWS) by a panel's block, added to `total` (R, PANEL).
    template <int R>
    void tile(const double* left, const double* panel, float* total) const {
        constexpr int V = 2;
        for (int n = 0; n < PANEL; n += V * DOUBLES) {
            Doubles sum[R][V] = {};
            for (int64_t l = 0; l < a.block; ++l)
                for (int v = 0; v < V; ++v) {
                    const double* at = panel + l * PANEL + n + v * DOUBLES;
                    const Doubles columns = *reinterpret_cast<const DoublesAt*>(at);
                    for (int i = 0; i < R; ++i) sum[i][v] += columns * left[l * DOUBLE_ROWS + i];
                }
            for (int i = 0; i < R; ++i)
                for (int v = 0; v < V; ++v) {
                    float* at = total + i * PANEL + n + v * DOUBLES;
                    *reinterpret_cast<HalfAt*>(at) += __builtin_convertvector(sum[i][v], HalfFloats);
                }
        }
    }

    void exact_tile(int64_t row, int64_t rows, int64_t panel, int64_t k, float* total) const {
        const int64_t first = panel * PANEL, last = std::min(first + PANEL, b.columns);
        std::vector<float> right(b.block);
        for (int64_t column = first; column < last; ++column) {
            b.read(column, k, right.data());
            for (int64_t i = 0; i < rows; ++i) {
                const double factor = a.factor(row + i, k) * b.factor(column, k);
                total[i * PANEL + column - first] +=
                    wide_dot(a.at(row + i, k), right.data(), a.block, factor);
            }
        }
    }

    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const int64_t tiles = groups(count, DOUBLE_ROWS), block = a.block;
        const int room = 64 - __builtin_clzll(block);
        const Left left = expanded(first, count);
        std::vector<double> columns(block * PANEL);
        std::vector<float> totals(tiles * DOUBLE_ROWS * PANEL);
        for (int64_t panel = from; panel < to; ++panel) {
            std::fill(totals.begin(), totals.end(), 0.0f);
            for (int64_t k = 0; k < a.blocks; ++k) {
                const int width = b.limits[panel * a.blocks + k] + room;
                expand_panel(panel, k, columns.data());
                for (int64_t t = 0; t < tiles; ++t) {
                    const int64_t rows = std::min<int64_t>(DOUBLE_ROWS, count - t * DOUBLE_ROWS);
                    const double* rows_lanes = &left.lanes[(t * a.blocks + k) * block * DOUBLE_ROWS];
                    float* total = &totals[t * DOUBLE_ROWS * PANEL];
                    if (width + left.widths[t * a.blocks + k] > DOUBLE_BITS && !narrow)
                        exact_tile(first + t * DOUBLE_ROWS, rows, panel, k, total);
                    else if (rows > 2)
                        tile<DOUBLE_ROWS>(rows_lanes, columns.data(), total);
                    else
                        tile<2>(rows_lanes, columns.data(), total);
                }
            }
            for (int64_t r = 0; r < count; ++r) {
                Floats sums[PANEL / W];
                std::memcpy(sums, &totals[r * PANEL], sizeof sums);
                finish.put<PANEL / W>(sums, first + r, panel, y);
            }
        }
    }
};

}  // namespace axs6
