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

// The neighbouring lanes of a row that a step takes, and what is known of a block of them.
struct Words {
    uint32_t any = 0, low = 0, high = 0;  // sums of bytes, two to a number

    uint32_t add(const void* lanes) {
        uint32_t word;
        std::memcpy(&word, lanes, 4);
        any |= word;
        const uint32_t bytes = word ^ 0x80808080u;
        low += bytes & 0x00FF00FFu;
        high += bytes >> 8 & 0x00FF00FFu;
        return word;
    }

    int32_t sum(int64_t lanes) const {
        const uint32_t total = (low & 0xFFFF) + (low >> 16) + (high & 0xFFFF) + (high >> 16);
        return static_cast<int32_t>(total) - 128 * static_cast<int32_t>(lanes);
    }

    // A block's factor in FP32: 1 for zeros, so that it needs no limit.
    float scale(double factor, Limits& limits) const {
        if (any == 0 && factor == factor) return 1.0f;
        limits.add(factor);
        return static_cast<float>(factor);
    }
};

// The right operand of a product of integers, by panels of columns.
struct Panels {
    int32_t* words;   // (panels, blocks, words, PANEL)
    float* scales;    // (panels, blocks, PANEL)
    Limits* limits;   // (panels,)
};

template <class Lane>
void pack_panel(const Matrix<Lane>& x, int64_t panel, const Panels& out) {
    const int64_t words = x.words();
    int32_t* at = out.words + panel * x.blocks * words * PANEL;
    float* scales = out.scales + panel * x.blocks * PANEL;
    Limits limits;
    const uint32_t offset = sizeof(Lane) == 1 ? 0x80808080u : 0;
    for (int64_t k = 0; k < x.blocks; ++k)
        for (int column = 0; column < PANEL; ++column) {
            const int64_t row = panel * PANEL + column;
            const bool there = row < x.rows;
            Words block;
            for (int64_t w = 0; w < words; ++w) {
                const uint32_t word = there ? block.add(x.at(row, k) + w * 4 / sizeof(Lane)) : 0;
                at[(k * words + w) * PANEL + column] = static_cast<int32_t>(word ^ offset);
            }
            scales[k * PANEL + column] = there ? block.scale(x.factor(row, k), limits) : 1.0f;
        }
    out.limits[panel] = limits;
}

// Some rows of the left operand, in tiles of ROWS rows, those of a tile side by side.
template <class Lane>
struct LeftRows {
    int64_t first, count, blocks, words;
    std::vector<int32_t> lanes;   // (tiles, blocks * words, ROWS)
    std::vector<float> scales;    // factors in FP32 (tiles, blocks, ROWS)
    std::vector<int32_t> starts;  // what sums start at (tiles, blocks, ROWS)
    std::vector<Limits> limits;   // (tiles,)

    LeftRows(const Matrix<Lane>& x, int64_t first, int64_t count)
        : first(first), count(count), blocks(x.blocks), words(x.blocks * x.words()) {
        const int64_t tiles = groups(count, ROWS);
        lanes.resize(tiles * words * ROWS);
        scales.resize(tiles * blocks * ROWS);
        starts.resize(tiles * blocks * ROWS);
        limits.resize(tiles);
        for (int64_t r = 0; r < count; ++r) add(x, r / ROWS, r % ROWS);
    }

private:
    void add(const Matrix<Lane>& x, int64_t tile, int64_t i) {
        const int64_t row = first + tile * ROWS + i, each = x.words();
        for (int64_t k = 0; k < blocks; ++k) {
            const int64_t at = tile * blocks + k;
            Words block;
            for (int64_t w = 0; w < each; ++w)
                lanes[(at * each + w) * ROWS + i] =
                    static_cast<int32_t>(block.add(x.at(row, k) + w * 4 / sizeof(Lane)));
            if (sizeof(Lane) == 1) starts[at * ROWS + i] = -UNSIGNED_OFFSET * block.sum(x.block);
            scales[at * ROWS + i] = block.scale(x.factor(row, k), limits[tile]);
        }
    }
};

}  // namespace axs6
