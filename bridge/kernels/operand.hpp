// Operands of products: integers of lanes under an exact factor for each block.
#pragma once

#include "lanes.hpp"

namespace axs6 {

constexpr int PANEL = 16;  // columns that lie together in the right operand

// Limits of a row's factors, without those of blocks of zeros: all are multiples of 2^low, and below
// 2^high. NaN is out of all limits.
struct Limits {
    int32_t low = 1 << 20, high = -(1 << 20);

    void add(double factor) {
        if (factor != factor) return add(Limits{-(1 << 20), 1 << 20});
        const uint64_t bits = bits_of<uint64_t>(factor);
        const int field = static_cast<int>(bits >> 52);
        const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
        low = std::min(low, field - 1075 + __builtin_ctzll(significand));
        high = std::max(high, field - 1022);
    }

    void add(const Limits& other) {
        low = std::min(low, other.low);
        high = std::max(high, other.high);
    }
};

// A matrix (rows, blocks * block), and its factors (rows, blocks).
template <class Lane>
struct Matrix {
    const Lane* lanes;
    const double* factors;
    int64_t rows, blocks, block;

    const Lane* at(int64_t row, int64_t k) const { return lanes + (row * blocks + k) * block; }
    double factor(int64_t row, int64_t k) const { return factors[row * blocks + k]; }
    int64_t words() const { return block * static_cast<int64_t>(sizeof(Lane)) / 4; }
};

// The neighbouring lanes that a step takes.
inline uint32_t word_at(const void* lanes) {
    uint32_t word;
    std::memcpy(&word, lanes, 4);
    return word;
}

// What a block's lanes are, taken together.
struct Seen {
    bool zeros, special = false;  // `special`: a number that is none, in BF16

    explicit Seen(uint32_t any) : zeros(any == 0) {}

    Seen(const Bf16* lanes, int64_t count) {
        uint16_t any = 0, top = 0;
        for (int64_t i = 0; i < count; ++i) {
            const auto magnitude = static_cast<uint16_t>(lanes[i].bits & 0x7FFF);
            any |= magnitude, top = std::max(top, magnitude);
        }
        zeros = any == 0, special = top >= 0x7F80;
    }

    // The block's factor in FP32: 1 for zeros, so that it needs no limit.
    float scale_of(double factor, Limits& limits) const {
        if (zeros && factor == factor) return 1.0f;
        limits.add(special ? std::numeric_limits<double>::quiet_NaN() : factor);
        return static_cast<float>(factor);
    }
};

// The right operand, by panels of columns.
template <class Lane>
struct Panels {
    int32_t* words;         // of lanes (panels, blocks, words, PANEL)
    float* scales;          // (panels, blocks, PANEL)
    int32_t* limits;        // of integers, as `Limits` (panels,); of others, widths (panels, blocks)
    const double* factors;  // (columns, blocks), or nullptr where the scales are the factors
    int64_t columns, blocks, block;

    static constexpr uint32_t OFFSET = sizeof(Lane) == 1 ? UNSIGNED_OFFSET * 0x01010101u : 0;

    int64_t block_words() const { return block * static_cast<int64_t>(sizeof(Lane)) / 4; }
    int64_t count() const { return groups(columns, PANEL); }

    int32_t* words_of(int64_t panel, int64_t k) const {
        return words + (panel * blocks + k) * block_words() * PANEL;
    }

    double factor(int64_t column, int64_t k) const {
        return factors ? factors[column * blocks + k]
                       : scales[(column / PANEL * blocks + k) * PANEL + column % PANEL];
    }

    Limits& limits_of(int64_t panel) const { return reinterpret_cast<Limits*>(limits)[panel]; }

    // The lanes of a block of a column.
    void read(int64_t column, int64_t k, Lane* to) const {
        const int32_t* from = words_of(column / PANEL, k) + column % PANEL;
        for (int64_t w = 0; w < block_words(); ++w) {
            const uint32_t word = from[w * PANEL] ^ OFFSET;
            std::memcpy(to + w * 4 / sizeof(Lane), &word, 4);
        }
    }

    // Those of a matrix of a batch.
    Panels of(int64_t g) const {
        const int64_t panel = g * count(), each = sizeof(Lane) == 4 ? blocks : sizeof(Limits) / 4;
        return {words_of(panel, 0),
                scales + panel * blocks * PANEL,
                limits + panel * each,
                factors ? factors + g * columns * blocks : nullptr,
                columns,
                blocks,
                block};
    }
};

// Write the words and scales of a panel; the limits of its factors.
template <class Lane>
Limits pack_panel(const Matrix<Lane>& x, int64_t panel, const Panels<Lane>& out) {
    const int64_t words = x.words();
    float* scales = out.scales + panel * x.blocks * PANEL;
    Limits limits;
    for (int64_t k = 0; k < x.blocks; ++k) {
        int32_t* at = out.words_of(panel, k);
        for (int column = 0; column < PANEL; ++column) {
            const int64_t row = panel * PANEL + column;
            const bool there = row < x.rows;
            uint32_t any = 0;
            for (int64_t w = 0; w < words; ++w) {
                const uint32_t word = there ? word_at(x.at(row, k) + w * 4 / sizeof(Lane)) : 0;
                any |= word;
                at[w * PANEL + column] = static_cast<int32_t>(word ^ Panels<Lane>::OFFSET);
            }
            const double factor = there ? x.factor(row, k) : 1.0;
            Seen seen(any);
            if constexpr (std::is_same_v<Lane, Bf16>)
                if (there) seen = Seen(x.at(row, k), x.block);
            scales[k * PANEL + column] = seen.scale_of(factor, limits);
        }
    }
    return limits;
}

// Some rows of the left operand, in tiles of ROWS rows, those of a tile side by side.
template <class Lane>
struct LeftRows {
    int64_t first, count, blocks, words;
    std::unique_ptr<int32_t[]> lanes;   // (tiles, blocks * words, ROWS)
    std::unique_ptr<float[]> scales;    // factors in FP32 (tiles, blocks, ROWS)
    std::unique_ptr<int32_t[]> starts;  // what sums start at (tiles, blocks, ROWS)
    std::vector<Limits> limits;         // (tiles,)

    LeftRows(const Matrix<Lane>& x, int64_t first, int64_t count)
        : first(first), count(count), blocks(x.blocks), words(x.blocks * x.words()) {
        const int64_t tiles = groups(count, ROWS);
        lanes.reset(new int32_t[tiles * words * ROWS]);
        scales.reset(new float[tiles * blocks * ROWS]);
        starts.reset(new int32_t[tiles * blocks * ROWS]);
        limits.resize(tiles);
        for (int64_t r = 0; r < count; ++r) switch (x.words()) {
            case 4: add<4>(x, r / ROWS, r % ROWS); break;
            case 8: add<8>(x, r / ROWS, r % ROWS); break;
            case 16: add<16>(x, r / ROWS, r % ROWS); break;
            default: add<0>(x, r / ROWS, r % ROWS);
        }
    }

private:
    // WORDS: of a block, or 0 where it is not known when compiled.
    template <int WORDS>
    void add(const Matrix<Lane>& x, int64_t tile, int64_t i) {
        constexpr int LANES = 4 / sizeof(Lane);
        const int64_t row = first + tile * ROWS + i, each = WORDS ? WORDS : x.words();
        for (int64_t k = 0; k < blocks; ++k) {
            const int64_t at = tile * blocks + k;
            const Lane* from = x.at(row, k);
            int32_t* to = &lanes[at * each * ROWS + i];
            uint32_t any = 0;
            for (int64_t w = 0; w < each; ++w) {
                const uint32_t word = word_at(from + w * LANES);
                any |= word;
                to[w * ROWS] = static_cast<int32_t>(word);
            }
            starts[at * ROWS + i] =
                sizeof(Lane) == 1 ? -UNSIGNED_OFFSET * sum_of(from, each * LANES) : 0;
            scales[at * ROWS + i] = Seen(any).scale_of(x.factor(row, k), limits[tile]);
        }
    }
};

}  // namespace axs6
