// Streams through many copies of a design: handshakes, stalls, and which copy works on what.
//
// The generated model comes before this file: State, In, Out, reset, step, load, store.
#pragma once
#include "control.hpp"
#include "stalls.hpp"

enum Outcome : int64_t { STUCK = -1, TOO_MANY = -2, BEYOND = -4 };

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
  V<1> next(uint32_t share) {
    uint8_t bytes[LANES];
    for (int l = 0; l < LANES; l++) bytes[l] = next_stall(state[l], share);
    V<8> stalled;
    memcpy(&stalled, bytes, sizeof stalled);
    return test(stalled, splat<8>(1));
  }
};

// What the ports showed in the first `cycles` cycles: row cycle * LANES + l is copy l's.
struct Trace {
  int64_t cycles;
  uint8_t (*handshake)[4];
  void* const* payload;
};

static void record(const Trace& trace, int64_t cycle, const In& in, const Out& out) {
  const V<1>* ports[] = {&in.i__valid, &out.i__ready, &out.o__valid, &in.o__ready};
  int64_t row[LANES];
  for (int l = 0; l < LANES; l++) row[l] = cycle * LANES + l;
  for (int p = 0; p < 4; p++)
    for (int l = 0; l < LANES; l++) trace.handshake[row[l]][p] = holds(*ports[p], l);
  store(out, trace.payload, {row, true});
}

// Where every copy stands in the rows of one side, and how many it has left.
struct Place {
  int64_t row[LANES], left[LANES];
  int64_t stride;
  int64_t safe;  // moves before some copy may reach its end
  bool consecutive;

  Place(const int64_t* first, const int64_t* count, int64_t step) : stride(step) {
    memcpy(row, first, sizeof row);
    memcpy(left, count, sizeof left);
    survey();
  }
  void survey() {
    safe = INT64_MAX;
    consecutive = true;
    for (int l = 0; l < LANES; l++) {
      if (left[l] > 0 && left[l] < safe) safe = left[l];
      consecutive &= row[l] == row[0] + l;
    }
  }
  // Says whether some copy may have come to its end.
  bool advance(const V<1>& moved) {
    if (all_true(moved)) {
      for (int l = 0; l < LANES; l++) row[l] += stride, left[l]--;
    } else {
      consecutive = false;
      for (int l = 0; l < LANES; l++) {
        int64_t mask = -(int64_t)holds(moved, l);
        row[l] += stride & mask, left[l] += mask;
      }
    }
    if (--safe > 0) return false;
    survey();
    return true;
  }
  // The rows of the copies that move; for others, and those at their end, a row of no account.
  Rows rows(const V<1>& moved, int64_t other, int64_t* buffer) const {
    if (consecutive && safe > 0 && all_true(moved)) return {row, true};
    for (int l = 0; l < LANES; l++) buffer[l] = holds(moved, l) && left[l] > 0 ? row[l] : other;
    return {buffer, false};
  }
  V<1> more() const {
    Mask some = 0;
    for (int l = 0; l < LANES; l++) some |= Mask(left[l] > 0) << l;
    return held(some);
  }
};

// Runs every copy until it has given its last output. Returns the number of cycles, or STUCK when
// nothing has moved for `patience` cycles, TOO_MANY when a copy has given more than it should,
// BEYOND when an item has a value beyond its field. busy[l] counts the cycles until copy l had
// finished.
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
  Place input(share.input_first, share.input_count, share.stride);
  Place output(share.output_first, share.output_count, share.stride);
  V<1> valid = input.more(), pending = splat<1>(0);
  in.o__ready = splat<1>(1);
  int64_t cycle = 0, moved = 0, unfinished = 0, buffer[LANES];
  bool fresh = true;
  for (int l = 0; l < LANES; l++) {
    busy[l] = 0;
    unfinished += share.output_count[l] > 0;
  }
  while (unfinished) {
    if (fresh) load(in, inputs, index, input.rows(valid, 0, buffer));
    in.i__valid = valid;
    if (STALLING) {
      in.i__valid = both(valid, either(pending, invert(input_stalls.next(input_stall))));
      in.o__ready = invert(output_stalls.next(output_stall));
    }
    step(state, in, out);
    if (cycle < trace.cycles) record(trace, cycle, in, out);
    V<1> took = both(in.i__valid, out.i__ready), gave = both(out.o__valid, in.o__ready);
    pending = both(in.i__valid, invert(took));
    cycle++;
    fresh = any_true(took);
    if (fresh) {
      moved = cycle;
      if (input.advance(took)) valid = input.more();
    }
    if (any_true(gave)) {
      moved = cycle;
      store(out, outputs, output.rows(gave, share.trash, buffer));
      if (output.advance(gave))
        for (int l = 0; l < LANES; l++)
          if (output.left[l] <= 0 && share.output_count[l] && !busy[l]) {
            busy[l] = cycle;
            unfinished--;
          }
    }
    if (cycle - moved > patience || stopped(cycle)) break;
  }
  if (in.beyond) return BEYOND;
  if (unfinished) return STUCK;
  for (int l = 0; l < LANES; l++)
    if (output.left[l] < 0) return TOO_MANY;
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
