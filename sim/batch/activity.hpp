// Copies of a design whose nets are watched: how often each net changed between successive cycles.
//
// The generated model comes before this file: State, In, Out with NETS nets, reset, step, load,
// store.
#pragma once
#include <memory>

#include "control.hpp"

constexpr int NETS = sizeof(Out::nets) / sizeof(V<1>);

// Changes of every net in every copy: counted in binary, a word of all copies for each digit, and
// emptied before it overflows.
struct Changes {
  static constexpr int DIGITS = 8, MOST = (1 << DIGITS) - 1;
  V<1> before[NETS];
  Mask digits[NETS][DIGITS];
  int counted = 0;

  void remember(const V<1>* now) { memcpy(before, now, sizeof before); }
  void count(const V<1>* now) {
    for (int n = 0; n < NETS; n++) {
      Mask carry = mask(before[n]) ^ mask(now[n]);
      for (Mask* digit = digits[n]; carry; digit++) {
        Mask was = *digit;
        *digit ^= carry;
        carry &= was;
      }
      before[n] = now[n];
    }
    counted++;
  }
  // Adds what was counted to the totals of the nets, LANES for each.
  void empty(uint64_t* totals) {
    for (int n = 0; n < NETS; n++) {
      V<8> few = splat<8>(0);
      for (int d = 0; d < DIGITS; d++) few = either(few, where(held(digits[n][d]), splat<8>(1 << d)));
      uint8_t bytes[LANES];
      memcpy(bytes, &few, sizeof bytes);
      for (int l = 0; l < LANES; l++) totals[(int64_t)n * LANES + l] += bytes[l];
    }
    memset(digits, 0, sizeof digits);
    counted = 0;
  }
};

struct Watched {
  State state;
  In in;
  Out out;
  Changes changes;
};

extern "C" {
int64_t axs6_lanes() { return LANES; }

// Runs `copies` copies from reset, copy l on the rows (first + l) * cycles and after: one item in
// each cycle. Changes count from that between cycles `settle` and settle + 1 on. Outputs of copy l
// go to the same rows in order, given[l] of them; row `trash` is one that nobody reads.
//
// Says whether every copy took an item in each cycle.
bool axs6_activity(const void* const* inputs, const int32_t* const* index, void* const* outputs,
                   int64_t first, int64_t copies, int64_t cycles, int64_t settle, int64_t trash,
                   uint64_t* totals, int64_t* given) {
  auto all = std::make_unique<Watched>();
  auto& [state, in, out, changes] = *all;
  reset(state);
  in.i__valid = in.o__ready = splat<1>(1);
  int64_t row[LANES], to[LANES];
  for (int64_t cycle = 0; cycle < cycles; cycle++) {
    for (int l = 0; l < LANES; l++) row[l] = (first + (l < copies ? l : copies - 1)) * cycles + cycle;
    load(in, inputs, index, {row, false});
    step(state, in, out);
    if (!all_true(out.i__ready) || stopped(cycle)) return false;
    if (cycle > settle) changes.count(out.nets);
    else changes.remember(out.nets);
    if (changes.counted == Changes::MOST) changes.empty(totals);
    for (int l = 0; l < LANES; l++)
      to[l] = holds(out.o__valid, l) && l < copies ? (first + l) * cycles + given[l]++ : trash;
    store(out, outputs, {to, false});
  }
  changes.empty(totals);
  return true;
}
}
