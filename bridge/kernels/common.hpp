// What all kernels share: the state of the floating-point unit, threads, and small numbers.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace axs6 {

// IEEE 754 as it stands, subnormals kept, whatever the calling thread had chosen.
class Ieee {
    std::fenv_t saved_;

public:
    Ieee() { std::fegetenv(&saved_), std::fesetenv(FE_DFL_ENV); }
    ~Ieee() { std::fesetenv(&saved_); }
    Ieee(const Ieee&) = delete;
    Ieee& operator=(const Ieee&) = delete;
};

constexpr int64_t SHARE = 1 << 18;  // values to encode for which a thread is worth its start

// work(first, last) for all of 0 to count, in as many contiguous parts as there are threads.
template <class Work>
void share(int64_t count, int64_t threads, const Work& work) {
    threads = std::max<int64_t>(1, std::min(threads, count));
    auto part = [&](int64_t i) {
        Ieee ieee;
        work(count * i / threads, count * (i + 1) / threads);
    };
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) {
        try {
            others.emplace_back(part, i);
        } catch (const std::system_error&) {  // no more threads: this one does it
            part(i);
        }
    }
    part(0);
    for (auto& other : others) other.join();
}

template <class To, class From>
inline To bits_of(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

// The upper half of the pattern of a float, whose lower half is 0.
struct Bf16 {
    uint16_t bits;

    Bf16() = default;
    explicit Bf16(float x) : bits(static_cast<uint16_t>(bits_of<uint32_t>(x) >> 16)) {}
    operator float() const { return bits_of<float>(uint32_t{bits} << 16); }
};

inline float canonical(float x) {
    return x == x ? x : bits_of<float>(uint32_t{0x7FC00000});
}

// 2^exponent, a normal number.
inline double power(int64_t exponent) {
    return bits_of<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// a + b - sum, where this is a + b rounded.
inline double lost_in(double a, double b, double sum) {
    const double part = sum - a;
    return (a - (sum - part)) + (b - part);
}

// A number that is nearest to x + lost, with 1 as its last bit where `lost` is not 0.
inline double odd(double x, double lost) {
    uint64_t bits = bits_of<uint64_t>(x);
    bits -= ((lost < 0) & (x > 0)) | ((lost > 0) & (x < 0));
    return bits_of<double>(bits | ((lost < 0) | (lost > 0)));
}

// a + b to within the last bit of float64, which is 1 where bits are lost.
inline double sum_to_odd(double a, double b) {
    const double sum = a + b;
    return odd(sum, lost_in(a, b, sum));
}

// a * b to within the last bit of float64, which is 1 where bits are lost.
inline double product_to_odd(double a, double b) {
    const double product = a * b;
    return odd(product, std::fma(a, b, -product));
}

// An integer to within the last bit of float64, which is 1 where bits are lost.
inline double to_odd(__int128 x) {
    const bool negative = x < 0;
    const unsigned __int128 magnitude = negative ? -static_cast<unsigned __int128>(x) : x;
    const auto upper = static_cast<uint64_t>(magnitude >> 64), lower = static_cast<uint64_t>(magnitude);
    const int width = upper ? 128 - __builtin_clzll(upper) : lower ? 64 - __builtin_clzll(lower) : 0;
    const int shift = std::max(width - 53, 0);
    const auto kept = static_cast<uint64_t>(magnitude >> shift);
    const bool inexact = (static_cast<unsigned __int128>(kept) << shift) != magnitude;
    const double value = static_cast<double>(static_cast<int64_t>(kept | inexact)) * power(shift);
    return negative ? -value : value;
}

inline int64_t groups(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace axs6
