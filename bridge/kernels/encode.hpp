// What is made of quantised blocks: the values that they stand for, or operands of products.
#pragma once

#include "quantise.hpp"

namespace axs6 {

// The FP32 values that blocks stand for, (rows, length).
struct Values {
    float* out;

    template <int B, int GROUP>
    void put(const Format& f, const Quantised& x, const uint32_t* bits, int64_t row, int64_t k,
             int64_t length) {
        const int count = B ? B : f.block;
        const int64_t at = k * count, used = std::min<int64_t>(count, length - at);
        float* to = out + row * length + at;
        if (used == count)
            return fill<B, GROUP>(f, x, bits, to);
        float values[MAX_BLOCK];
        fill<B, GROUP>(f, x, bits, values);
        std::memcpy(to, values, 4 * used);
    }

private:
    template <int B, int GROUP>
    static void fill(const Format& f, const Quantised& x, const uint32_t* bits, float* to) {
        const int count = B ? B : f.block;
        const int scale = x.scale;
        if (!x.plain) {
            constexpr double most = std::numeric_limits<float>::max();
            for (int i = 0; i < count; ++i) {
                const double q = signed_zero(f, x.q[i], bits[i]) / static_cast<double>(f.divisor);
                const double value = std::ldexp(q, scale - (GROUP == 1 ? 0 : x.shift[i]));
                to[i] = static_cast<float>(std::clamp(value, -most, most));
            }
            return;
        }
        const auto divisor = static_cast<float>(f.divisor);
        const uint32_t base = static_cast<uint32_t>(scale + 127) << 23;
        for (int i = 0; i < count; ++i) {
            const uint32_t less = GROUP == 1 ? 0 : static_cast<uint32_t>(x.shift[i]) << 23;
            const float q = signed_zero(f, x.q[i], bits[i]);
            to[i] = (f.divisor > 1 ? q / divisor : q) * bits_of<float>(base - less);
        }
    }
};

// The left operand of products: integers (rows, blocks * block), factors and codes (rows, blocks).
template <class Lane>
struct Lanes {
    Lane* lanes;
    double* factors;
    uint8_t* codes;

    template <int B, int GROUP>
    void put(const Format& f, const Quantised& x, const uint32_t*, int64_t row, int64_t k,
             int64_t length) {
        const int count = B ? B : f.block;
        const int64_t at = row * groups(length, count) + k;
        Lane part[MAX_BLOCK];  // of its own, so that the compiler may use vectors
        const int32_t top = f.shift_top + 127;
        for (int i = 0; i < count; ++i) {
            const float more = GROUP == 1 ? 1.0f : bits_of<float>((top - x.shift[i]) << 23);
            part[i] = to_lane<Lane>(x.q[i] * more);
        }
        std::memcpy(lanes + at * count, part, count * sizeof(Lane));
        factors[at] = bits_of<double>(static_cast<uint64_t>(x.code + f.offset + 1023) << 52);
        codes[at] = static_cast<uint8_t>(x.code);
    }
};

// Quantise rows (first, last) of FP32 patterns x (rows, length); how many blocks are not finite.
template <int B, int GROUP, class Sink>
int64_t quantise_rows(const Format& f, const uint32_t* x, int64_t length, int64_t first, int64_t last,
                      Sink& sink) {
    const int64_t size = f.block, blocks = groups(length, size);
    uint32_t last_bits[MAX_BLOCK];
    Quantised found;
    int64_t bad = 0;
    for (int64_t row = first; row < last; ++row)
        for (int64_t k = 0; k < blocks; ++k) {
            const int64_t used = std::min(size, length - k * size);
            const uint32_t* from = x + row * length + k * size;
            if (used < size) {
                std::memset(last_bits, 0, 4 * size);
                std::memcpy(last_bits, from, 4 * used);
                from = last_bits;
            }
            bad += !quantise_block<B, GROUP>(f, from, found);
            sink.template put<B, GROUP>(f, found, from, row, k, length);
        }
    return bad;
}

template <class Sink>
int64_t quantise_any(const Format& f, const uint32_t* x, int64_t length, int64_t first, int64_t last,
                     Sink& sink) {
    if (f.group == f.block) {
        if (f.block == 32) return quantise_rows<32, 1>(f, x, length, first, last, sink);
        if (f.block == 16) return quantise_rows<16, 1>(f, x, length, first, last, sink);
        return quantise_rows<0, 1>(f, x, length, first, last, sink);
    }
    if (f.group == 2 && f.block == 16)
        return quantise_rows<16, 2>(f, x, length, first, last, sink);
    return quantise_rows<0, 0>(f, x, length, first, last, sink);
}

template <class Sink>
int64_t quantise(const Format& f, const uint32_t* x, int64_t rows, int64_t length, int64_t threads,
                 Sink sink) {
    std::vector<int64_t> bad(rows ? threads + 1 : 1);
    const int64_t parts = std::max<int64_t>(1, std::min(threads, rows * length / SHARE));
    share(parts, parts, [&](int64_t first, int64_t last) {
        Sink own = sink;
        bad[first] = quantise_any(f, x, length, rows * first / parts, rows * last / parts, own);
    });
    int64_t total = 0;
    for (const int64_t each : bad) total += each;
    return total;
}

}  // namespace axs6
