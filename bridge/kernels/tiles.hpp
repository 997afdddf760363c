// Products in the processor's matrix unit, of lanes in BF16.
//
// It adds the products of a block for 16 rows and 16 columns, in FP32. The sums are exact: lanes are
// integers of at most 8 significant bits, and no sum has more than 24. Where sums are wider, each lane
// is split in two, a multiple of 2^9 and the rest, whose products are three such sums; float64 adds
// them, and rounds once.
#pragma once

#include "doubles.hpp"

#if defined(AXS6_TILES)

#include <sys/syscall.h>
#include <unistd.h>

namespace axs6 {

constexpr int TILE = 16;        // rows
constexpr int TILE_WORDS = 16;  // of a row, at most

// Whether the system lets this process use the unit.
inline bool has_tiles() {
    constexpr long REQUEST = 0x1023, TILE_DATA = 18;
    static const bool granted = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
    return granted;
}

// The unit of a thread, set for three tiles of sums, two of rows and two of columns.
class Unit {
    struct alignas(64) Config {
        uint8_t palette = 1, start = 0, none[14] = {};
        uint16_t bytes[16] = {64, 64, 64, 0, 0, 64, 64};
        uint8_t rows[16] = {TILE, TILE, TILE, TILE, TILE};
    };

public:
    explicit Unit(int64_t words) {
        Config config;
        config.bytes[3] = config.bytes[4] = static_cast<uint16_t>(4 * words);
        config.rows[5] = config.rows[6] = static_cast<uint8_t>(words);
        _tile_loadconfig(&config);
    }
    ~Unit() { _tile_release(); }
    Unit(const Unit&) = delete;
    Unit& operator=(const Unit&) = delete;
};

// Lanes as multiples of 2^9, and the rest.
inline void split(const Bf16* lanes, int64_t count, Bf16* high, Bf16* low) {
    constexpr float MAGIC = 3.0f * (int64_t{1} << 31);  // above it, numbers are multiples of 2^9
    for (int64_t i = 0; i < count; ++i) {
        const float lane = lanes[i], upper = (lane + MAGIC) - MAGIC;
        high[i] = Bf16(upper), low[i] = Bf16(lane - upper);
    }
}

struct alignas(64) Line {
    Bf16 lanes[32];
};

// Lanes in lines of a cache.
struct Lines {
    std::vector<Line> lines;

    explicit Lines(int64_t lanes) : lines(groups(lanes, 32)) {}
    Bf16* at(int64_t lane) { return lines.data()->lanes + lane; }
    const Bf16* at(int64_t lane) const { return lines.data()->lanes + lane; }
};

// PLANES: into how many parts lanes are split.
template <int PLANES>
struct TileProduct {
    // Blocks whose sums are made before they are read, so that the one does not wait for the other.
    static constexpr int64_t GROUP = 4 / PLANES;

    Matrix<Bf16> a;
    Panels<Bf16> b;
    Finish finish;
    int bits;     // |sums| < 2^bits
    bool powers;  // whether factors are powers of two
    float* y;     // (a.rows, b.columns)

    // Some rows, in tiles; absent ones are zeros.
    struct Left {
        Lines lanes;                     // (tiles, blocks, PLANES, TILE, block)
        std::vector<float> scales;       // (tiles, blocks, TILE)
        std::vector<int32_t> exponents;  // of the scales
        std::vector<Limits> limits;      // (tiles,)
    };

    Left tiled(int64_t first, int64_t count) const {
        const int64_t tiles = groups(count, TILE), places = tiles * a.blocks * TILE;
        Left out{Lines(places * PLANES * a.block), std::vector<float>(places),
                 std::vector<int32_t>(places), std::vector<Limits>(tiles)};
        for (int64_t r = 0; r < count; ++r)
            for (int64_t k = 0; k < a.blocks; ++k) {
                const int64_t tile = r / TILE, at = (tile * a.blocks + k) * TILE + r % TILE;
                const Bf16* from = a.at(first + r, k);
                Bf16* to = out.lanes.at(((tile * a.blocks + k) * PLANES * TILE + r % TILE) * a.block);
                if constexpr (PLANES == 2)
                    split(from, a.block, to, to + TILE * a.block);
                else
                    std::memcpy(to, from, a.block * sizeof(Bf16));
                const Seen seen(from, a.block);
                out.scales[at] = seen.scale_of(a.factor(first + r, k), out.limits[tile]);
                out.exponents[at] = bits_of<int32_t>(out.scales[at]) - ONE;
            }
        return out;
    }

    // The exact sums of blocks, for a tile and a panel.
    struct Sums {
        alignas(64) float of[2 * PLANES - 1][TILE][PANEL];

        // Set to those of rows (TILE, block) and columns (words, PANEL) of lanes; further planes lie
        // behind.
        void set(const Bf16* rows, const Bf16* columns, int64_t column_apart, int64_t words) {
            const int64_t row_apart = 2 * TILE * words;
            _tile_zero(0);
            if constexpr (PLANES == 2) {
                _tile_zero(1);
                _tile_zero(2);
            }
            for (int64_t w = 0; w < words; w += TILE_WORDS) {
                _tile_loadd(3, rows + 2 * w, 4 * words);
                _tile_loadd(5, columns + 2 * w * PANEL, 4 * PANEL);
                _tile_dpbf16ps(0, 3, 5);
                if constexpr (PLANES == 2) {
                    _tile_loadd(4, rows + row_apart + 2 * w, 4 * words);
                    _tile_loadd(6, columns + column_apart + 2 * w * PANEL, 4 * PANEL);
                    _tile_dpbf16ps(1, 3, 6);
                    _tile_dpbf16ps(1, 4, 5);
                    _tile_dpbf16ps(2, 4, 6);
                }
            }
            _tile_stored(0, of[0], 4 * PANEL);
            if constexpr (PLANES == 2) {
                _tile_stored(1, of[1], 4 * PANEL);
                _tile_stored(2, of[2], 4 * PANEL);
            }
        }

        // Those of a row, rounded once.
        Floats row(int i) const {
            if constexpr (PLANES == 1) return load(of[0][i]);
            const __m256 low = half(i, 0), high = half(i, DOUBLES);
            return (Floats)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
        }

    private:
        __m256 half(int i, int n) const {
            __m512d sum = _mm512_cvtps_pd(_mm256_load_ps(&of[PLANES - 1][i][n]));
            sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm256_load_ps(&of[2 * PLANES - 2][i][n])));
            sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm256_load_ps(&of[0][i][n])));
            return _mm512_cvtpd_ps(sum);
        }
    };

    // POWERS: the product of the factors is made by adding exponents.
    template <bool POWERS>
    void tile(const Left& left, int64_t tile, int64_t first, int64_t rows, int64_t panel,
              const Bf16* columns) const {
        const int64_t size = a.block * PANEL;
        Floats total[TILE] = {};
        Sums sums[GROUP];
        for (int64_t first_k = 0; first_k < a.blocks; first_k += GROUP) {
            const int64_t last_k = std::min(first_k + GROUP, a.blocks);
            for (int64_t k = first_k; k < last_k; ++k)
                sums[k - first_k].set(left.lanes.at((tile * a.blocks + k) * PLANES * TILE * a.block),
                                      columns + k * size, a.blocks * size, a.words());
            for (int64_t k = first_k; k < last_k; ++k) {
                const int64_t at = (tile * a.blocks + k) * TILE;
                const Floats scale = load(b.scales + (panel * a.blocks + k) * PANEL);
                const float* scales = &left.scales[at];
                const int32_t* exponents = &left.exponents[at];
#pragma GCC unroll 16
                for (int i = 0; i < TILE; ++i) {
                    const Floats sum = sums[k - first_k].row(i);
                    total[i] += POWERS ? sum * (Floats)((Ints)scale + exponents[i])
                                       : sum * scales[i] * scale;
                }
            }
        }
        Floats done[TILE];  // in memory; the totals are in registers
#pragma GCC unroll 16
        for (int i = 0; i < TILE; ++i) store(reinterpret_cast<float*>(done + i), total[i]);
        for (int64_t i = 0; i < rows; ++i) finish.put<1>(done + i, first + i, panel, y);
    }

    void exact_tile(int64_t row, int64_t rows, int64_t panel) const {
        std::vector<Bf16> lanes(a.block);
        std::vector<float> left(a.block), right(a.blocks * a.block);
        for (int64_t n = panel * PANEL; n < std::min((panel + 1) * PANEL, b.columns); ++n) {
            for (int64_t k = 0; k < a.blocks; ++k) {
                b.read(n, k, lanes.data());
                std::copy(lanes.begin(), lanes.end(), &right[k * a.block]);
            }
            for (int64_t m = row; m < row + rows; ++m) {
                float total = 0;
                for (int64_t k = 0; k < a.blocks; ++k) {
                    std::copy_n(a.at(m, k), a.block, left.data());
                    const double factor = a.factor(m, k) * b.factor(n, k);
                    total += wide_dot(left.data(), &right[k * a.block], a.block, factor);
                }
                finish.put(total, m, n, y);
            }
        }
    }

    // Rows (first, count) by columns of the panels (from, to).
    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const Unit unit(std::min<int64_t>(a.words(), TILE_WORDS));
        const Left left = tiled(first, count);
        const int64_t length = a.blocks * a.block * PANEL;
        Lines planes(PLANES == 2 ? 2 * length : 0);
        for (int64_t panel = from; panel < to; ++panel) {
            const auto* columns = reinterpret_cast<const Bf16*>(b.words_of(panel, 0));
            if constexpr (PLANES == 2) {
                split(columns, length, planes.at(0), planes.at(length));
                columns = planes.at(0);
            }
            for (int64_t r = 0; r < count; r += TILE) {
                const int64_t rows = std::min<int64_t>(TILE, count - r), at = first + r;
                const Limits &own = left.limits[r / TILE], &others = b.limits_of(panel);
                const bool added = powers && fits_powers(own, others);
                if (!fits(own, others, bits) || (PLANES == 2 && !added))
                    exact_tile(at, rows, panel);
                else if (added)
                    tile<true>(left, r / TILE, at, rows, panel, columns);
                else
                    tile<false>(left, r / TILE, at, rows, panel, columns);
            }
        }
    }
};

}  // namespace axs6

#endif
