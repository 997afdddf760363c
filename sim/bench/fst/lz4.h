// What Verilator's FST writer needs of LZ4, for machines without its header: blocks of LZ4's block
// format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), which every reader takes.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

namespace axs6_lz4 {

constexpr int kLeastMatch = 4;
constexpr int kLiteralEnd = 5;   // bytes at the end that are always literals
constexpr int kMatchLimit = 12;  // no match starts nearer to the end
constexpr int kFarthest = 65535;
constexpr int kHashBits = 12;

inline uint32_t word_at(const char *place) {
    uint32_t word;
    std::memcpy(&word, place, sizeof word);
    return word;
}

inline char *put_length(char *out, int length) {
    for (length -= 15; length >= 0; length -= 255)
        *out++ = static_cast<char>(length < 255 ? length : 255);
    return out;
}

// Literals, then a match `offset` bytes back unless that is 0.
inline char *put_sequence(char *out, const char *literals, int count, int offset, int match) {
    const int extra = offset ? match - kLeastMatch : 0;
    *out++ = static_cast<char>((count < 15 ? count : 15) << 4 | (extra < 15 ? extra : 15));
    out = put_length(out, count);
    std::memcpy(out, literals, count);
    out += count;
    if (offset) {
        *out++ = static_cast<char>(offset & 255);
        *out++ = static_cast<char>(offset >> 8);
        out = put_length(out, extra);
    }
    return out;
}

}  // namespace axs6_lz4

// Compresses greedily; `target` has room for LZ4_compressBound(size) bytes. Returns the bytes used.
inline int LZ4_compress_default(const char *source, char *target, int size, int) {
    using namespace axs6_lz4;
    std::vector<int> seen(1 << kHashBits, -kFarthest - 1);
    char *out = target;
    int literals = 0;
    for (int at = 0; at < size - kMatchLimit;) {
        const uint32_t word = word_at(source + at);
        int &slot = seen[word * 2654435761u >> (32 - kHashBits)];
        const int before = slot;
        slot = at;
        if (at - before > kFarthest || word_at(source + before) != word) {
            at++;
            continue;
        }
        int match = kLeastMatch;
        while (at + match < size - kLiteralEnd && source[at + match] == source[before + match])
            match++;
        out = put_sequence(out, source + literals, at - literals, at - before, match);
        at += match;
        literals = at;
    }
    out = put_sequence(out, source + literals, size - literals, 0, 0);
    return static_cast<int>(out - target);
}
