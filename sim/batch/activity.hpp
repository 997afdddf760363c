// Copies of a design whose nets are watched: how often each net changed between successive cycles.
//
// The generated model comes before this file: State, In, Out with NETS nets, reset, step, load,
// store.
#pragma once
#include <memory>

constexpr int NETS = sizeof(Out::nets) / sizeof(V<8>);

// Changes of every net in every copy: counted in bytes, which are emptied before they overflow.
struct Changes {
  static constexpr int MOST = 255;
  V<8> before[NETS], few[NETS];
  int counted = 0;

  void remember(const V<8>* now) { memcpy(before, now, sizeof before); }
  void count(const V<8>* now) {
    for (int n = 0; n < NETS; n++) {
      few[n] = sub(few[n], differ(now[n], before[n]));  // a change is -1
      before[n] = now[n];
    }
    counted++;
  }
  // Adds what was counted to the totals of the nets, LANES for each.
  void empty(uint64_t* totals) {
    for (int n = 0; n < NETS; n++) {
      uint8_t bytes[LANES];
      memcpy(bytes, &few[n], sizeof bytes);
      for (int l = 0; l < LANES; l++) totals[(int64_t)n * LANES + l] += bytes[l];
    }
    memset(few, 0, sizeof few);
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
  in.i__valid = in.o__ready = splat<8>(255);
  int64_t row[LANES], to[LANES];
  for (int64_t cycle = 0; cycle < cycles; cycle++) {
    for (int l = 0; l < LANES; l++) row[l] = (first + (l < copies ? l : copies - 1)) * cycles + cycle;
    load(in, inputs, index, {row, false});
    step(state, in, out);
    if (!all_true(out.i__ready)) return false;
    if (cycle > settle) changes.count(out.nets);
    else changes.remember(out.nets);
    if (changes.counted == Changes::MOST) changes.empty(totals);
    uint8_t valid[LANES];
    memcpy(valid, &out.o__valid, sizeof valid);
    for (int l = 0; l < LANES; l++)
      to[l] = valid[l] && l < copies ? (first + l) * cycles + given[l]++ : trash;
    store(out, outputs, {to, false});
  }
  changes.empty(totals);
  return true;
}
}
