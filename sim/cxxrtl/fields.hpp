// Fields of a payload: COUNT elements of WIDTH bits from bit OFFSET up, in a row of an array.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

// A port is a wire where the design drives it straight from a register.
template <size_t BITS> const cxxrtl::value<BITS>& now(const cxxrtl::value<BITS>& x) { return x; }
template <size_t BITS> const cxxrtl::value<BITS>& now(const cxxrtl::wire<BITS>& x) { return x.curr; }

inline uint32_t ones(size_t count) { return 0xffffffffu >> (32 - count); }

// Bits wait in a register until they fill a chunk. Unrolled, all shifts are constants.
template <size_t OFFSET, size_t WIDTH, size_t COUNT, class Element>
void put_field(uint32_t* payload, const void* array, int64_t row) {
  auto elements = (const Element*)array + row * COUNT;
  uint32_t* chunk = payload + OFFSET / 32;
  size_t waiting = OFFSET % 32;
  uint64_t bits = *chunk & (1u << waiting) - 1;
#pragma GCC unroll 64
  for (size_t e = 0; e < COUNT; e++)
    for (size_t done = 0; done < WIDTH; done += 32) {
      size_t count = std::min<size_t>(32, WIDTH - done);
      bits |= ((uint64_t)elements[e] >> done & ones(count)) << waiting;
      waiting += count;
      if (waiting < 32) continue;
      *chunk++ = bits;
      bits >>= 32, waiting -= 32;
    }
  if (waiting) *chunk = (*chunk & ~ones(waiting)) | bits;
}

template <size_t OFFSET, size_t WIDTH, size_t COUNT, class Element>
void take_field(const uint32_t* payload, void* array, int64_t row) {
  auto elements = (Element*)array + row * COUNT;
  for (size_t e = 0; e < COUNT; e++) {
    uint64_t value = 0;
    for (size_t done = 0; done < WIDTH;) {
      size_t bit = OFFSET + e * WIDTH + done, count = std::min(32 - bit % 32, WIDTH - done);
      value |= (uint64_t)(payload[bit / 32] >> bit % 32 & ones(count)) << done;
      done += count;
    }
    constexpr size_t REST = 64 - WIDTH;
    elements[e] = std::is_signed<Element>::value ? (int64_t)(value << REST) >> REST : value;
  }
}

// A field whose elements are signals of a waveform: `PATH`, or `PATH[3]` and so on in an array.
template <size_t OFFSET, size_t WIDTH, size_t... SHAPE> struct NamedField {
  static constexpr size_t COUNT = (SHAPE * ... * 1);
  cxxrtl::value<WIDTH> elements[COUNT];

  template <size_t BITS> void update(const cxxrtl::value<BITS>& payload) {
    for (size_t e = 0; e < COUNT; e++)
      for (size_t done = 0; done < WIDTH;) {
        size_t bit = OFFSET + e * WIDTH + done;
        size_t count = std::min({32 - bit % 32, 32 - done % 32, WIDTH - done});
        uint32_t mask = ones(count) << done % 32, part = payload.data[bit / 32] >> bit % 32;
        uint32_t& chunk = elements[e].data[done / 32];
        chunk = (chunk & ~mask) | (part << done % 32 & mask);
        done += count;
      }
  }
  void add(cxxrtl::debug_items& items, const std::string& path) {
    for (size_t e = 0; e < COUNT; e++) {
      std::string place;
      size_t rest = COUNT, index = e;
      ((rest /= SHAPE, place += "[" + std::to_string(index / rest) + "]", index %= rest), ...);
      items.add(path + place, cxxrtl::debug_item(elements[e]));
    }
  }
};
