// Products of integers under exact factors, one FP32 rounding for each block.
//
// The sum P of a block's products is an integer of at most 24 bits. Where it has no more with the
// significands of its factors, and all products of P and factors are FP32 values, the sum with the
// accumulator is the one rounding, with FMA or without; `fits` tells it for a tile. With wider
// significands the product is rounded before it is added. Others take `exact_tile`.
#pragma once

#include "operand.hpp"

namespace axs6 {

// What is done to sums: y = fp32(fp32(sum / divisor) * fp32(left[m] * right[n])), then
// fp32(y + bias[n]).
struct Finish {
    float divisor;
    const float* left;   // (rows,), or nullptr where nothing is multiplied
    const float* right;  // (columns,)
    const float* bias;   // (columns,), or nullptr where nothing is added
    int64_t columns;

    float of(float sum, int64_t row, int64_t column) const {
        float y = divisor == 1.0f ? sum : sum / divisor;
        if (left) y *= left[row] * right[column];
        return canonical(y);
    }

    // All of it for some neighbouring columns.
    Floats of(Floats y, int64_t row, int64_t column) const {
        if (divisor != 1.0f) y /= divisor;
        if (left) y *= left[row] * load(right + column);
        y = canonical(y);
        return bias ? canonical(y + load(bias + column)) : y;
    }

    // Add the bias to some values of a row, from this column on. No FMA takes in the product before,
    // which `canonical` keeps apart.
    void add_bias(float* y, int64_t column, int64_t count) const {
        if (!bias) return;
        for (int64_t n = 0; n < count; ++n) y[n] = canonical(y[n] + bias[column + n]);
    }

    // One sum, to y (rows, columns).
    void put(float sum, int64_t row, int64_t column, float* y) const {
        float* out = y + row * columns + column;
        *out = of(sum, row, column);
        add_bias(out, column, 1);
    }

    // The sums of a row from this panel on, as many vectors as V.
    template <int V>
    void put(const Floats* sums, int64_t row, int64_t panel, float* y) const {
        const int64_t column = panel * PANEL, count = std::min<int64_t>(V * W, columns - column);
        float* out = y + row * columns + column;
        if (count == V * W) {
            for (int v = 0; v < V; ++v) store(out + v * W, of(sums[v], row, column + v * W));
            return;
        }
        float values[V * W];
        for (int v = 0; v < V; ++v) store(values + v * W, sums[v]);
        for (int64_t n = 0; n < count; ++n) out[n] = of(values[n], row, column + n);
        add_bias(out, column, count);
    }
};

template <class Lane>
void pack_limited(const Matrix<Lane>& x, int64_t panel, const Panels<Lane>& out) {
    out.limits_of(panel) = pack_panel(x, panel, out);
}

constexpr int FLOAT_BITS = 24;  // of integers that FP32 holds

constexpr int COLUMNS = W == 16 ? 2 * PANEL : PANEL;  // of a tile
constexpr int VECTORS = COLUMNS / W;
constexpr int32_t ONE = 127 << 23;  // the pattern of 1

// The factors of a sum: its products with both have at most 24 bits, or both are powers of two; or
// the one with the row's has, or at most 53.
enum Factors : int32_t { SHORT, POWERS, LONG, DOUBLE };

// Whether sums below 2^bits, times the row's factor and times both, are FP32 values.
inline bool fits(const Limits& rows, const Limits& columns, int bits) {
    return rows.low >= -149 && columns.low >= -149 && columns.high <= 128 &&
           rows.high + bits <= 128 && rows.low + columns.low >= -149 &&
           rows.high + columns.high + bits <= 128;
}

// Whether sums below 2^bits times the row's factor are values of FP32, or have no more bits than two of
// them; and whether the last bits of products that are rounded are normal.
inline bool fits_long(const Limits& rows, const Limits& columns, int bits, Factors factors) {
    const bool there = rows.low >= -149 && columns.low >= -149 && columns.high <= 128;
    const bool rounded = rows.low + columns.low >= -126 && rows.high + columns.high + bits <= 128;
    return there && rows.high + bits <= 128 && (factors != DOUBLE || rounded);
}

// fp32(x * y), rounded once. The product of their upper and lower parts is exact in float64, whose sum
// has a last bit of 1 where bits are lost.
inline float rounded_product(double x, double y) {
    constexpr uint64_t LOWER = (uint64_t{1} << 29) - 1;
    const auto upper = bits_of<double>(bits_of<uint64_t>(x) & ~LOWER);
    return static_cast<float>(sum_to_odd(upper * y, (x - upper) * y));
}

// fp32(sums * row * columns), rounded once, where both are FP32 values that `fits_long` accepts.
#if defined(AXS6_VNNI)

// The product is `high` and an exact rest of two parts, of which the second keeps its own rest in its
// last bit.
inline Floats rounded_products(Ints sums, float row, Floats columns) {
    const Floats own = __builtin_convertvector(sums, Floats), rows = Floats{} + row;
    const Floats upper = unfused(own * rows), lower = fused(own, rows, -upper);
    const Floats high = unfused(upper * columns);
    return high + fused_to_odd(lower, columns, fused(upper, columns, -high));
}

#else

// Float64 holds the first product.
inline Floats rounded_products(Ints sums, float row, Floats columns) {
    typedef int32_t HalfInts __attribute__((vector_size(4 * DOUBLES)));
    typedef int64_t Longs __attribute__((vector_size(8 * DOUBLES)));
    constexpr int64_t BELOW = (int64_t{1} << 29) - 1, MIDDLE = int64_t{1} << 28;  // of FP32's last bit
    struct Halves { HalfInts ints[2]; };
    struct HalfColumns { HalfFloats floats[2]; } right, out;
    const auto halves = bits_of<Halves>(sums);
    std::memcpy(&right, &columns, sizeof right);
    for (int h = 0; h < 2; ++h) {
        const Doubles left = __builtin_convertvector(halves.ints[h], Doubles) * row;
        const Doubles factors = __builtin_convertvector(right.floats[h], Doubles);
        const Doubles products = left * factors;
        out.floats[h] = __builtin_convertvector(products, HalfFloats);
        const Longs middle = ((Longs)products & BELOW) == MIDDLE;
        int64_t any = 0;
        for (int i = 0; i < DOUBLES; ++i) any |= middle[i];
        if (any)
            for (int i = 0; i < DOUBLES; ++i) out.floats[h][i] = rounded_product(left[i], factors[i]);
    }
    return bits_of<Floats>(out);
}

#endif

// Whether both factors, powers of two, and their product are normal, so that exponents can be added.
inline bool fits_powers(const Limits& rows, const Limits& columns) {
    return rows.low >= -126 && columns.low >= -126 && rows.low + columns.low >= -126;
}

template <class Lane>
struct Product {
    Matrix<Lane> a;
    Panels<Lane> b;
    Finish finish;
    int bits;         // |P| < 2^bits
    Factors factors;
    float* y;         // (a.rows, b.columns)

    void exact_tile(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
        std::vector<Lane> right(a.blocks * a.block);
        for (int64_t n = column; n < column + columns; ++n) {
            for (int64_t k = 0; k < a.blocks; ++k) b.read(n, k, &right[k * a.block]);
            for (int64_t m = row; m < row + rows; ++m) {
                float total = 0;
                for (int64_t k = 0; k < a.blocks; ++k) {
                    const Lane* left = a.at(m, k);
                    int32_t sum = 0;
                    for (int64_t i = 0; i < a.block; ++i) sum += left[i] * right[k * a.block + i];
                    total += rounded_product(sum * a.factor(m, k), b.factor(n, k));
                }
                finish.put(total, m, n, y);
            }
        }
    }

    // WORDS: of a block, or 0 where it is not known when compiled. The product of powers of two is made
    // by adding exponents, which leaves the multipliers alone.
    template <int R, int V, int WORDS, Factors FACTORS>
    void tile(const LeftRows<Lane>& left, int64_t tile, int64_t panel) const {
        const int64_t blocks = a.blocks, words = WORDS ? WORDS : a.words();
        const int64_t apart = W == PANEL ? blocks * words * PANEL : W;  // between vectors
        const int64_t scales_apart = W == PANEL ? blocks * PANEL : W;
        const int32_t* column = b.words_of(panel, 0);
        const float* column_scale = b.scales + panel * blocks * PANEL;
        const int32_t* row = left.lanes.get() + tile * blocks * words * ROWS;
        const float* row_scale = left.scales.get() + tile * blocks * ROWS;
        const int32_t* start = left.starts.get() + tile * blocks * ROWS;
        Floats total[R][V] = {};
        for (int64_t k = 0; k < blocks; ++k) {
            Ints sum[R][V];
            for (int i = 0; i < R; ++i)
                for (int v = 0; v < V; ++v) sum[i][v] = repeat(start[i]);
#pragma GCC unroll 4
            for (int64_t w = 0; w < words; ++w, column += PANEL, row += ROWS)
                for (int v = 0; v < V; ++v) {
                    const Ints columns = load(column + v * apart);
                    for (int i = 0; i < R; ++i) sum[i][v] = step<Lane>(sum[i][v], columns, row[i]);
                }
            for (int v = 0; v < V; ++v) {
                const Floats scale = load(column_scale + v * scales_apart);
                for (int i = 0; i < R; ++i) {
                    const Floats sums = __builtin_convertvector(sum[i][v], Floats);
                    const int32_t exponent = bits_of<int32_t>(row_scale[i]) - ONE;
                    if constexpr (FACTORS == POWERS)
                        total[i][v] += sums * (Floats)((Ints)scale + exponent);
                    else if constexpr (FACTORS == SHORT)
                        total[i][v] += sums * row_scale[i] * scale;
                    else if constexpr (FACTORS == LONG)
                        total[i][v] += unfused(sums * row_scale[i] * scale);
                    else
                        total[i][v] += rounded_products(sum[i][v], row_scale[i], scale);
                }
            }
            column_scale += PANEL, row_scale += ROWS, start += ROWS;
        }
        for (int i = 0; i < R; ++i) finish.put<V>(total[i], left.first + tile * ROWS + i, panel, y);
    }

    template <int V, Factors FACTORS, int R = ROWS>
    void any_tile(const LeftRows<Lane>& left, int64_t tile, int64_t rows, int64_t panel) const {
        if constexpr (R == ROWS)
            if (rows == R) switch (a.words()) {
                case 4: return this->template tile<R, V, 4, FACTORS>(left, tile, panel);
                case 8: return this->template tile<R, V, 8, FACTORS>(left, tile, panel);
                case 16: return this->template tile<R, V, 16, FACTORS>(left, tile, panel);
            }
        if constexpr (R > 1)
            if (rows < R) return any_tile<V, FACTORS, R - 1>(left, tile, rows, panel);
        this->template tile<R, V, 0, FACTORS>(left, tile, panel);
    }

    template <int V>
    void any_tile(const LeftRows<Lane>& left, int64_t tile, int64_t rows, int64_t panel,
                  Factors own) const {
        switch (own) {
            case POWERS: return any_tile<V, POWERS>(left, tile, rows, panel);
            case SHORT: return any_tile<V, SHORT>(left, tile, rows, panel);
            case LONG: return any_tile<V, LONG>(left, tile, rows, panel);
            case DOUBLE: return any_tile<V, DOUBLE>(left, tile, rows, panel);
        }
    }

    // Rows (first, count) by columns of the panels (from, to).
    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const LeftRows<Lane> left(a, first, count);
        constexpr int64_t each = COLUMNS / PANEL;
        for (int64_t panel = from; panel < to; panel += each) {
            Limits columns = b.limits_of(panel);
            const bool whole = panel + each <= to;
            if (whole) columns.add(b.limits_of(panel + each - 1));
            for (int64_t r = 0; r < count; r += ROWS) {
                const int64_t rows = std::min<int64_t>(ROWS, count - r), column = panel * PANEL;
                const Limits& limits = left.limits[r / ROWS];
                const bool powers = factors == POWERS && fits_powers(limits, columns);
                const Factors own = powers || factors != POWERS ? factors : SHORT;
                if (!(factors < LONG ? fits(limits, columns, bits)
                                     : fits_long(limits, columns, bits, factors)))
                    exact_tile(first + r, rows, column,
                               std::min((whole ? each : 1) * PANEL, b.columns - column));
                else if (whole)
                    any_tile<VECTORS>(left, r / ROWS, rows, panel, own);
                else
                    any_tile<PANEL / W>(left, r / ROWS, rows, panel, own);
            }
        }
    }
};

}  // namespace axs6
