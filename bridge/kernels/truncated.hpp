// Aligned products, truncated toward zero with their accumulator, in FP32 alone.
//
// That is possible where scales of blocks stand outside, so that nothing overflows and nothing is
// subnormal, and where no sum has more than 23 bits. A number of 2^23 units or more, to which a
// product is added toward zero, takes its whole units: magnitudes of positive products are added to
// one such number, and those of negative ones to another. Sums are in units of products of lanes.
#pragma once

#include "aligned.hpp"

namespace axs6 {

#if defined(AXS6_VNNI)
constexpr bool HAS_TRUNCATED = true;

inline Floats add_truncated(Floats x, Floats y, Floats sum) {
    constexpr int how = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    return (Floats)_mm512_fmadd_round_ps((__m512)x, (__m512)y, (__m512)sum, how);
}
#else
constexpr bool HAS_TRUNCATED = false;

inline Floats add_truncated(Floats, Floats, Floats sum) { return sum; }
#endif

struct TruncatedProduct {
    typedef int8_t Bytes __attribute__((vector_size(4 * W)));
    static constexpr int VECTORS = 4, COLUMNS = VECTORS * W;
    static constexpr int LOWEST = -64;  // below the exponents of all terms and accumulators

    SteppedProduct<AlignedSum<float, false>> whole;

    const Accumulator& how() const { return whole.how; }

    // Rows of the left operand: magnitudes, where the columns of their signs begin, and fields.
    struct Left {
        std::vector<float> magnitudes;
        std::vector<int32_t> starts, fields;
        bool special = false;

        Left(const Side& a, const Accumulator& how, int64_t first, int64_t count) {
            const int64_t length = a.length();
            magnitudes.resize(count * length), starts.resize(count * length);
            fields.resize(count * length / 4);
            std::vector<int32_t> scales(count * a.blocks);
            std::vector<uint8_t> marks(count * a.blocks);
            const Group<float, 1> rows{magnitudes.data(), fields.data(), scales.data(), marks.data()};
            for (int64_t i = 0; i < count; ++i)
                rows.at(i, length, a.blocks).put(a, first + i, 0, how);
            for (const uint8_t mark : marks) special |= mark;
            for (int64_t l = 0; l < count * length; ++l) {
                starts[l] = std::signbit(magnitudes[l]) ? 0 : COLUMNS;
                magnitudes[l] = std::fabs(magnitudes[l]);
            }
        }
    };

    // Magnitudes of lanes of some columns, (lanes, 3, COLUMNS): of negative ones, positive ones, and
    // negative ones again; 0 for others and beyond the last panel.
    void expand(int64_t panel, int64_t panels, int64_t first, int64_t last, float* out) const {
        for (int64_t p = 0; p < COLUMNS / PANEL; ++p) {
            const float* from = nullptr;
            if (p < panels) from = whole.right.at(panel + p, whole.a.length(), whole.a.blocks).lanes;
            for (int64_t l = first; l < last; ++l) {
                float* to = out + (l - first) * 3 * COLUMNS + p * PANEL;
                for (int n = 0; n < PANEL; ++n) {
                    const float x = from ? from[l * PANEL + n] : 0;
                    to[n] = to[n + 2 * COLUMNS] = std::max(-x, 0.0f);
                    to[n + COLUMNS] = std::max(x, 0.0f);
                }
            }
        }
    }

    // The fields of lanes of some columns, four in a word (lanes / 4, COLUMNS).
    void expand_fields(int64_t panel, int64_t panels, int64_t first, int64_t last, int32_t* out) const {
        for (int64_t p = 0; p < COLUMNS / PANEL; ++p)
            for (int64_t w = first / 4; w < last / 4; ++w) {
                int32_t* to = out + (w - first / 4) * COLUMNS + p * PANEL;
                std::fill(to, to + PANEL, static_cast<int32_t>(uint32_t{NO_FIELD & 255} * 0x01010101u));
                if (p >= panels) continue;
                const auto group = whole.right.at(panel + p, whole.a.length(), whole.a.blocks);
                std::memcpy(to, group.fields + w * PANEL, sizeof(int32_t) * PANEL);
            }
    }

    static Bytes larger(Bytes x, Bytes y) { return x > y ? x : y; }
    static Ints larger(Ints x, Ints y) { return x > y ? x : y; }

    // The accumulators of a row after `lanes` more.
    void step(const float* magnitudes, const int32_t* starts, const int32_t* fields, int64_t lanes,
              const float* columns, const int32_t* words, float* total) const {
        Bytes most[VECTORS];
        for (int v = 0; v < VECTORS; ++v) most[v] = Bytes{} + int8_t{-128};
        for (int64_t w = 0; w < lanes / 4; ++w) {
            const auto own = (Bytes)repeat(fields[w]);
            for (int v = 0; v < VECTORS; ++v)
                most[v] = larger(most[v], (Bytes)load(words + w * COLUMNS + v * W) + own);
        }
        Floats plus[VECTORS], minus[VECTORS];
        for (int v = 0; v < VECTORS; ++v) {
            const auto x = (Ints)most[v];
            const Ints top = larger(larger(x << 24 >> 24, x << 16 >> 24), larger(x << 8 >> 24, x >> 24));
            const Floats before = load(total + v * W), none{};
            const Ints own = ((Ints)before >> 23 & 255) - 127;
            const Ints term = top < 0 ? repeat(LOWEST) : top + how().point;
            const Ints largest = larger(larger(term, own), repeat(LOWEST));
            const auto base = (Floats)((largest + (127 + 23 - how().fraction)) << 23);
            const Floats one = none + 1.0f;
            plus[v] = add_truncated(before > none ? before : none, one, base);
            minus[v] = add_truncated(before < none ? -before : none, one, base);
        }
        for (int64_t l = 0; l < lanes; ++l, columns += 3 * COLUMNS) {
            const auto left = (Floats)repeat(bits_of<int32_t>(magnitudes[l]));
            const float* at = columns + starts[l];
            for (int v = 0; v < VECTORS; ++v) {
                plus[v] = add_truncated(left, load(at + v * W), plus[v]);
                minus[v] = add_truncated(left, load(at + COLUMNS + v * W), minus[v]);
            }
        }
        const Ints mask = repeat(-1 << (23 - how().output_fraction));
        for (int v = 0; v < VECTORS; ++v)
            store(total + v * W, (Floats)((Ints)(plus[v] - minus[v]) & mask));
    }

    // Rows (first, count) by columns of the panels (from, to).
    void run(int64_t first, int64_t count, int64_t from, int64_t to) const {
        const Side& a = whole.a;
        const int64_t length = a.length(), reduction = how().reduction;
        const float unit = std::ldexp(1.0f, how().offset);  // of sums
        const Left left(a, how(), first, count);
        bool special = left.special;
        for (int64_t panel = from; panel < to; ++panel)
            special |= whole.any(whole.right.at(panel, length, a.blocks).special, 0, length, a.block);
        if (special) return whole.run(first, count, from, to);
        // Arrays of vectors, aligned as they are.
        std::vector<Floats> lanes(reduction * 3 * VECTORS), sums(count * VECTORS), outer;
        std::vector<Ints> fields(reduction / 4 * VECTORS);
        auto *columns = reinterpret_cast<float*>(lanes.data());
        auto *words = reinterpret_cast<int32_t*>(fields.data());
        for (int64_t panel = from; panel < to; panel += COLUMNS / PANEL) {
            const int64_t panels = std::min<int64_t>(to - panel, COLUMNS / PANEL);
            sums.assign(count * VECTORS, Floats{}), outer.assign(count * VECTORS, Floats{});
            auto *totals = reinterpret_cast<float*>(sums.data());
            auto *promoted = reinterpret_cast<float*>(outer.data());
            int64_t number = 0;
            for (int64_t lane = 0; lane < length; lane += reduction) {
                const int64_t last = std::min(lane + reduction, length);
                expand(panel, panels, lane, last, columns);
                expand_fields(panel, panels, lane, last, words);
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t at = i * length + lane;
                    step(&left.magnitudes[at], &left.starts[at], &left.fields[at / 4], last - lane,
                         columns, words, &totals[i * COLUMNS]);
                }
                const bool full = how().promote && ++number % how().promote == 0;
                if (!full && (last < length || how().scaled)) continue;
                double scales[COLUMNS];
                const int64_t k = lane / a.block;
                whole.scales_of(panel, COLUMNS, k, scales);
                for (int64_t i = 0; i < count; ++i)
                    whole.promote(first + i, k, COLUMNS, scales, unit, &totals[i * COLUMNS],
                                  &promoted[i * COLUMNS]);
            }
            for (int64_t i = 0; i < count; ++i)
                whole.put(first + i, panel, panels * PANEL, &promoted[i * COLUMNS]);
        }
    }
};

}  // namespace axs6
