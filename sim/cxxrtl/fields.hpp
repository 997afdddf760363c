// Fields of a payload: COUNT elements of WIDTH bits from bit OFFSET up, in a row of an array.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

// A port is a wire where the design drives it straight from a register.
template <size_t BITS> const cxxrtl::value<BITS>& now(const cxxrtl::value<BITS>& x) { return x; }
template <size_t BITS> const cxxrtl::value<BITS>& now(const cxxrtl::wire<BITS>& x) { return x.curr; }

// Calls visit(chunk, shift, done, count) for each part of a chunk that an element lies in: its bits
// from `done` up are the `count` bits of the chunk from `shift` up.
template <size_t WIDTH, class Visit> inline void each_part(size_t bit, Visit visit) {
  for (size_t done = 0; done < WIDTH;) {
    size_t chunk = (bit + done) / 32, shift = (bit + done) % 32;
    size_t count = std::min(32 - shift, WIDTH - done);
    visit(chunk, shift, done, count);
    done += count;
  }
}

inline uint32_t ones(size_t count) { return 0xffffffffu >> (32 - count); }

template <size_t OFFSET, size_t WIDTH, size_t COUNT, class Element>
void put_field(uint32_t* payload, const void* array, int64_t row) {
  auto elements = (const Element*)array + row * COUNT;
  for (size_t e = 0; e < COUNT; e++) {
    auto value = (uint64_t)elements[e];
    each_part<WIDTH>(OFFSET + e * WIDTH, [&](size_t chunk, size_t shift, size_t done, size_t count) {
      uint32_t mask = ones(count) << shift;
      payload[chunk] = (payload[chunk] & ~mask) | ((uint32_t)(value >> done) << shift & mask);
    });
  }
}

template <size_t OFFSET, size_t WIDTH, size_t COUNT, class Element>
void take_field(const uint32_t* payload, void* array, int64_t row) {
  auto elements = (Element*)array + row * COUNT;
  for (size_t e = 0; e < COUNT; e++) {
    uint64_t value = 0;
    each_part<WIDTH>(OFFSET + e * WIDTH, [&](size_t chunk, size_t shift, size_t done, size_t count) {
      value |= (uint64_t)(payload[chunk] >> shift & ones(count)) << done;
    });
    constexpr size_t REST = 64 - WIDTH;
    elements[e] = std::is_signed<Element>::value ? (int64_t)(value << REST) >> REST : value;
  }
}
