// Copies of a design whose nets are watched: how often each net changed between successive cycles.
//
// The generated model comes before this file: Model with its nets, reset, step, load, store.
#pragma once
#include <memory>

#include "control.hpp"

constexpr int NETS = sizeof(Model::nets) / sizeof(V);

// Changes of every net in every copy: counted in binary, a vector of all copies for each digit, and
// emptied before it overflows.
struct Changes {
  static constexpr int DIGITS = 8, MOST = (1 << DIGITS) - 1;
  V before[NETS];
  V digits[NETS][DIGITS];
  int counted;

  void remember(const V* now) { memcpy(before, now, sizeof before); }
  void count(const V* now) {
    for (int n = 0; n < NETS; n++) {
      V carry = before[n] ^ now[n];
      for (V* digit = digits[n]; any(carry); digit++) {
        V was = *digit;
        *digit ^= carry;
        carry &= was;
      }
      before[n] = now[n];
    }
    counted++;
  }
  // Adds what was counted to the totals of the nets, COPIES for each.
  void empty(uint64_t* totals) {
    for (int n = 0; n < NETS; n++) {
      uint8_t few[COPIES];
      Field<8, DIGITS, 1, false>::store(digits[n], few, {nullptr, 0, COPIES, 0});
      for (int l = 0; l < COPIES; l++) totals[(int64_t)n * COPIES + l] += few[l];
    }
    memset(digits, 0, sizeof digits);
    counted = 0;
  }
};

struct Watched {
  Model model;
  Changes changes;
};

extern "C" {
int64_t axs6_copies() { return COPIES; }

// Runs `copies` copies from reset, copy l on the rows (first + l) * cycles and after: one item in
// each cycle. Changes count from that between cycles `settle` and settle + 1 on. Outputs of copy l
// go to the same rows in order, given[l] of them; row `trash` is one that nobody reads.
//
// Says whether every copy took an item in each cycle.
bool axs6_activity(const void* const* inputs, const int32_t* const* index, void* const* outputs,
                   int64_t first, int64_t copies, int64_t cycles, int64_t settle, int64_t trash,
                   uint64_t* totals, int64_t* given) {
  auto watched = std::make_unique<Watched>();
  auto& [m, changes] = *watched;
  reset(m);
  m.i_valid = m.o_ready = ONES;
  int64_t row[COPIES], to[COPIES];
  for (int64_t cycle = 0; cycle < cycles; cycle++) {
    for (int l = 0; l < COPIES; l++) row[l] = (first + (l < copies ? l : copies - 1)) * cycles + cycle;
    load(m, inputs, index, {row, 0, COPIES, 0});
    step(m);
    if (!all(m.i_ready) || stopped(cycle)) return false;
    if (cycle > settle) changes.count(m.nets);
    else changes.remember(m.nets);
    if (changes.counted == Changes::MOST) changes.empty(totals);
    for (int l = 0; l < COPIES; l++)
      to[l] = holds(m.o_valid, l) && l < copies ? (first + l) * cycles + given[l]++ : trash;
    store(m, outputs, {to, 0, COPIES, 0});
  }
  changes.empty(totals);
  return true;
}
}
