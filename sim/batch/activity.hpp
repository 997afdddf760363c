// Copies of a design whose nets are watched: how often each toggled from cycle to cycle, and how
// often it was 1.
//
// The generated model comes before this file: Model with its nets, reset, step, load, store.
#pragma once
#include <memory>

#include "control.hpp"

constexpr int NETS = sizeof(Model::nets) / sizeof(V);

// Events of every net in every copy: counted in binary, a vector of all copies for each digit, and
// emptied before it overflows.
struct Counter {
  static constexpr int DIGITS = 8, MOST = (1 << DIGITS) - 1;
  V digits[NETS][DIGITS];

  void add(int net, V events) {
    for (V* digit = digits[net]; any(events); digit++) {
      V was = *digit;
      *digit ^= events;
      events &= was;
    }
  }
  // Adds what was counted to the totals of the nets, COPIES for each.
  void empty(uint64_t* totals) {
    for (int n = 0; n < NETS; n++) {
      uint8_t few[COPIES];
      Field<8, DIGITS, 1, false>::store(digits[n], few, {nullptr, 0, COPIES, 0});
      for (int l = 0; l < COPIES; l++) totals[(int64_t)n * COPIES + l] += few[l];
    }
    memset(digits, 0, sizeof digits);
  }
};

// A model with the toggles of its nets and, where they are asked for, the cycles in which each is 1.
struct Watched {
  Model model;
  Counter toggles, ones;
  V before[NETS];
  int counted = 0;

  void count(uint64_t* totals, uint64_t* highs) {
    for (int n = 0; n < NETS; n++) {
      toggles.add(n, before[n] ^ model.nets[n]);
      if (highs) ones.add(n, model.nets[n]);
    }
    if (++counted == Counter::MOST) empty(totals, highs);
  }
  void empty(uint64_t* totals, uint64_t* highs) {
    toggles.empty(totals);
    if (highs) ones.empty(highs);
    counted = 0;
  }
};

extern "C" {
int64_t axs6_copies() { return COPIES; }

// Runs `copies` copies from reset, copy l on the rows (first + l) * cycles and after: one item in
// each cycle. Toggles count from that between cycles `settle` and settle + 1 on, and ones, unless
// `highs` is null, from the latter cycle on. Outputs of copy l go to the same rows in order,
// given[l] of them; row `trash` is one that nobody reads.
//
// Says whether every copy took an item in each cycle.
bool axs6_activity(const void* const* inputs, const int32_t* const* index, void* const* outputs,
                   int64_t first, int64_t copies, int64_t cycles, int64_t settle, int64_t trash,
                   uint64_t* totals, uint64_t* highs, int64_t* given) {
  auto watched = std::make_unique<Watched>();
  Model& m = watched->model;
  reset(m);
  m.i_valid = m.o_ready = ONES;
  int64_t row[COPIES], to[COPIES];
  for (int64_t cycle = 0; cycle < cycles; cycle++) {
    for (int l = 0; l < COPIES; l++) row[l] = (first + (l < copies ? l : copies - 1)) * cycles + cycle;
    load(m, inputs, index, {row, 0, COPIES, 0});
    step(m);
    if (!all(m.i_ready) || stopped(cycle)) return false;
    if (cycle > settle) watched->count(totals, highs);
    memcpy(watched->before, m.nets, sizeof watched->before);
    for (int l = 0; l < COPIES; l++)
      to[l] = holds(m.o_valid, l) && l < copies ? (first + l) * cycles + given[l]++ : trash;
    store(m, outputs, {to, 0, COPIES, 0});
  }
  watched->empty(totals, highs);
  return true;
}
}
