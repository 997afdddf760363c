// Streams through many copies of a design: handshakes, stalls, and which copy works on what.
//
// The generated model comes before this file: State, In, Out, reset, step, load, store.
#pragma once
#include "stalls.hpp"

// One copy's items lie at rows first, first + stride, ...; so do its outputs.
struct Share {
  int64_t input_first[LANES], input_count[LANES];
  int64_t output_first[LANES], output_count[LANES];
  int64_t stride;
  int64_t trash;  // a row of the output arrays that nobody reads
};

// Stalls of one side of every copy.
struct Stalls {
  uint32_t state[LANES];
  void seed(uint64_t seed, int64_t first_copy, Side side) {
    for (int l = 0; l < LANES; l++) state[l] = first_stall_state(seed, first_copy + l, side);
  }
  void next(uint8_t* stalled, uint32_t share) {
    for (int l = 0; l < LANES; l++) stalled[l] = next_stall(state[l], share) ? 255 : 0;
  }
};

// What the ports showed in the first `cycles` cycles: row cycle * LANES + l is copy l's.
struct Trace {
  int64_t cycles;
  uint8_t (*handshake)[4];
  void* const* payload;
};

static void record(const Trace& trace, int64_t cycle, const In& in, const Out& out) {
  const V<8>* ports[] = {&in.i__valid, &out.i__ready, &out.o__valid, &in.o__ready};
  int64_t row[LANES];
  for (int l = 0; l < LANES; l++) row[l] = cycle * LANES + l;
  for (int p = 0; p < 4; p++) {
    uint8_t bits[LANES];
    memcpy(bits, ports[p], sizeof bits);
    for (int l = 0; l < LANES; l++) trace.handshake[row[l]][p] = bits[l] & 1;
  }
  store(out, trace.payload, row);
}

// Runs every copy until it has given its last output. Returns the number of cycles, or -1 when
// nothing has moved for `patience` cycles. busy[l] counts the cycles until copy l had finished.
template <bool STALLING>
static int64_t run_copies(const Share& share, const void* const* inputs,
                          const int32_t* const* index, void* const* outputs,
                          uint64_t seed, uint32_t input_stall, uint32_t output_stall,
                          int64_t first_copy, int64_t patience, int64_t* busy,
                          const Trace& trace) {
  State state;
  In in;
  Out out;
  reset(state);
  memset(&in, 0, sizeof in);
  Stalls input_stalls, output_stalls;
  input_stalls.seed(seed, first_copy, INPUT_SIDE);
  output_stalls.seed(seed, first_copy, OUTPUT_SIDE);
  int64_t sent[LANES] = {}, given[LANES] = {}, row[LANES], output_row[LANES];
  uint8_t valid[LANES], ready[LANES], stalled[LANES], pending[LANES] = {};
  int64_t cycle = 0, moved = 0, unfinished = 0;
  bool fresh = true;
  for (int l = 0; l < LANES; l++) {
    busy[l] = 0;
    unfinished += share.output_count[l] > 0;
  }
  memset(ready, 255, sizeof ready);
  while (unfinished) {
    if (fresh)
      for (int l = 0; l < LANES; l++) {
        bool more = sent[l] < share.input_count[l];
        row[l] = more ? share.input_first[l] + sent[l] * share.stride : 0;
        valid[l] = more ? 255 : 0;
      }
    if (fresh) load(in, inputs, index, row);
    uint8_t offered[LANES];
    memcpy(offered, valid, sizeof offered);
    if (STALLING) {
      input_stalls.next(stalled, input_stall);
      for (int l = 0; l < LANES; l++) offered[l] &= pending[l] | ~stalled[l];
      output_stalls.next(stalled, output_stall);
      for (int l = 0; l < LANES; l++) ready[l] = ~stalled[l];
    }
    memcpy(&in.i__valid, offered, sizeof offered);
    memcpy(&in.o__ready, ready, sizeof ready);
    step(state, in, out);
    if (cycle < trace.cycles) record(trace, cycle, in, out);
    V<8> takes = both(in.i__valid, out.i__ready), gives = both(out.o__valid, in.o__ready);
    uint8_t took[LANES], gave[LANES];
    memcpy(took, &takes, sizeof took);
    memcpy(gave, &gives, sizeof gave);
    int64_t movement = 0;
    for (int l = 0; l < LANES; l++) {
      sent[l] += took[l] & 1;
      pending[l] = offered[l] & ~took[l];
      movement += (took[l] | gave[l]) & 1;
    }
    bool any = false;
    for (int l = 0; l < LANES; l++) any |= took[l];
    fresh = any;
    cycle++;
    int64_t outputs_now = 0;
    for (int l = 0; l < LANES; l++) outputs_now += gave[l] & 1;
    if (outputs_now) {
      for (int l = 0; l < LANES; l++) {
        bool wanted = gave[l] && given[l] < share.output_count[l];
        output_row[l] = wanted ? share.output_first[l] + given[l] * share.stride : share.trash;
        given[l] += gave[l] & 1;
      }
      store(out, outputs, output_row);
      for (int l = 0; l < LANES; l++)
        if (gave[l] && given[l] == share.output_count[l]) {
          busy[l] = cycle;
          unfinished--;
        }
    }
    moved = movement ? cycle : moved;
    if (cycle - moved > patience) return -1;
  }
  // A copy that gives more than it should is found by the caller.
  for (int l = 0; l < LANES; l++)
    if (given[l] > share.output_count[l]) return -2;
  return cycle;
}

extern "C" {
int64_t axs6_lanes() { return LANES; }

int64_t axs6_run(const Share* share, const void* const* inputs, const int32_t* const* index,
                 void* const* outputs, uint64_t seed, uint32_t input_stall, uint32_t output_stall,
                 int64_t first_copy, int64_t patience, int64_t* busy, int64_t traced,
                 uint8_t (*handshake)[4], void* const* payload) {
  auto run = input_stall | output_stall ? run_copies<true> : run_copies<false>;
  Trace trace{traced, handshake, payload};
  return run(*share, inputs, index, outputs, seed, input_stall, output_stall, first_copy, patience,
             busy, trace);
}
}
