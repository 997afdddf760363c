// Digests of bytes, by which a change of them is noticed.
#pragma once

#include "lanes.hpp"

namespace axs6 {

constexpr int64_t DIGEST_WORDS = 32;      // of 64 bits
constexpr int64_t DIGEST_PART = 1 << 20;  // bytes with a digest of their own
constexpr int64_t DIGEST_PARTS = 8;       // for which a thread is worth its start

typedef uint64_t Wide __attribute__((vector_size(4 * W)));
typedef uint32_t Narrow __attribute__((vector_size(4 * W)));
typedef Wide WideAt __attribute__((aligned(1), may_alias));

// Word i of the bytes is multiplied, in halves, and goes into word i % DIGEST_WORDS of the digest,
// which is rotated and multiplied then. Each step is one-to-one in the word and in the digest, so
// that a change of one word is always noticed; one of several goes unnoticed about once in 2^64.
// Between one word and the next a changed bit passes through a low place of a product, where it
// changes many: that a few bits of the next word undo it takes chance.
class Digest {
    static constexpr int64_t VECTORS = DIGEST_WORDS * 8 / sizeof(Wide);
    static constexpr uint32_t FIRST = 0x85EBCA77, SECOND = 0x9E3779B1;  // odd
    static constexpr int ROTATION = 37;

    Wide state_[VECTORS];

    void add(const char* from) {
        for (int64_t i = 0; i < VECTORS; ++i) {
            const Wide word = *reinterpret_cast<const WideAt*>(from + i * sizeof(Wide));
            const Wide mixed = state_[i] ^ (Wide)((Narrow)word * FIRST);
            const Wide turned = mixed << ROTATION | mixed >> (64 - ROTATION);
            state_[i] = (Wide)((Narrow)turned * SECOND);
        }
    }

public:
    Digest(const char* from, int64_t bytes) {
        for (Wide& each : state_) each = Wide{} + SECOND;
        const char* const end = from + bytes;
        for (; end - from >= int64_t{sizeof state_}; from += sizeof state_) add(from);
        char rest[sizeof state_] = {};
        std::memcpy(rest, from, end - from);
        add(rest);
    }

    void store(uint64_t* out) const { std::memcpy(out, state_, sizeof state_); }
};

}  // namespace axs6
