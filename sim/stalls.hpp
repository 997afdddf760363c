// Which cycles are stalled: a pseudo-random sequence for each side of each copy of a design.
#pragma once
#include <cstdint>

enum Side { INPUT_SIDE, OUTPUT_SIDE };

static inline uint32_t first_stall_state(uint64_t seed, uint64_t copy, Side side) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + (2 * copy + side + 1) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 30) * 0x94d049bb133111ebu;
  return (uint32_t)(z >> 32) | 1;
}

// Whether this cycle is stalled, as `share` of 256 cycles are.
static inline bool next_stall(uint32_t& state, uint32_t share) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return (state >> 12 & 255) < share;
}
