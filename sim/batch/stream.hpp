// Streams through many copies of a design: handshakes, stalls, and which copy works on what.
//
// The generated model comes before this file: Model, reset, step, load, store.
#pragma once
#include <chrono>
#include <new>
#include "stalls.hpp"

enum Outcome : int64_t { STUCK = -1, TOO_MANY = -2, BEYOND = -4, UNFINISHED = -5 };

using Clock = std::chrono::steady_clock;
constexpr auto SLICE = std::chrono::milliseconds(50);  // of a run, after which its caller looks up

// One copy's items lie at rows first, first + stride, ...; so do its outputs.
struct Share {
  int64_t input_first[COPIES], input_count[COPIES];
  int64_t output_first[COPIES], output_count[COPIES];
  int64_t stride;
  int64_t trash;  // a row of the output arrays that nobody reads
  int64_t active;  // the copies from this one on have no items
};

// Stalls of one side of every copy.
struct Stalls {
  uint32_t state[COPIES];
  uint8_t bytes[COPIES];
  int active;
  Stalls(uint64_t seed, int64_t first_copy, Side side, int active) : bytes{}, active(active) {
    for (int l = 0; l < COPIES; l++) state[l] = first_stall_state(seed, first_copy + l, side);
  }
  V next(uint32_t share) {
    for (int l = 0; l < active; l++) bytes[l] = next_stall(state[l], share);
    return from_bytes(bytes);
  }
};

// What the ports showed in the first `cycles` cycles: row cycle * COPIES + l is copy l's.
struct Trace {
  int64_t cycles;
  uint8_t (*handshake)[4];
  void* const* payload;
};

static void record(const Trace& trace, int64_t cycle, const Model& m) {
  const V* ports[] = {&m.i_valid, &m.i_ready, &m.o_valid, &m.o_ready};
  for (int p = 0; p < 4; p++)
    for (int l = 0; l < COPIES; l++) trace.handshake[cycle * COPIES + l][p] = holds(*ports[p], l);
  store(m, trace.payload, {nullptr, cycle * COPIES, COPIES, 0});
}

// Where every copy stands in the rows of one side, and how many it has left: `row` and `left` before
// the last `moves`, which all copies made together.
struct Place {
  int64_t row[COPIES], left[COPIES];
  int64_t moves = 0;
  uint8_t bytes[COPIES];
  int64_t stride;
  int active;    // copies that are looked at
  int64_t safe;  // moves before some copy may reach its end
  bool consecutive;

  Place(const int64_t* first, const int64_t* count, int64_t step, int active)
      : bytes{}, stride(step), active(active) {
    memcpy(row, first, sizeof row);
    memcpy(left, count, sizeof left);
    survey();
  }
  void settle() {
    if (!moves) return;
    for (int l = 0; l < active; l++) row[l] += stride * moves, left[l] -= moves;
    moves = 0;
  }
  void survey() {
    safe = INT64_MAX;
    consecutive = true;
    for (int l = 0; l < active; l++) {
      if (left[l] > 0 && left[l] < safe) safe = left[l];
      consecutive &= row[l] == row[0] + l && left[l] > 0;
    }
  }
  // Says whether some copy may have come to its end.
  bool advance(const V& moved) {
    if (all(moved)) {
      moves++;
    } else {
      settle();
      consecutive = false;
      to_bytes(moved, bytes);
      for (int l = 0; l < active; l++) {
        int64_t mask = -(int64_t)bytes[l];
        row[l] += stride & mask, left[l] += mask;
      }
    }
    if (--safe > 0) return false;
    settle();
    survey();
    return true;
  }
  // The rows of the copies that move; for others, and those at their end, a row of no account.
  Rows rows(const V& moved, int64_t other, int64_t* buffer) {
    if (consecutive && all(moved)) return {nullptr, row[0] + stride * moves, active, stride};
    settle();
    to_bytes(moved, bytes);
    for (int l = 0; l < active; l++) buffer[l] = bytes[l] && left[l] > 0 ? row[l] : other;
    return {buffer, 0, active, 0};
  }
  V more() {
    for (int l = 0; l < active; l++) bytes[l] = left[l] > 0;
    for (int l = active; l < COPIES; l++) bytes[l] = 0;
    return from_bytes(bytes);
  }
};

// A run of every copy until it has given its last output.
struct Run {
  Model m;
  const Share& share;
  const void* const* inputs;
  const int32_t* const* index;
  void* const* outputs;
  const uint32_t input_stall, output_stall;
  const int64_t patience, most;
  int64_t* busy;  // cycles until copy l had finished; 0 where it has not, -1 where it gave too much
  const Trace trace;
  const int active;
  Stalls input_stalls, output_stalls;
  Place input, output;
  V valid, pending = ZERO;
  int64_t cycle = 0, moved = 0, unfinished = 0, buffer[COPIES];
  bool fresh = true;

  Run(const Share& share, const void* const* inputs, const int32_t* const* index, void* const* outputs,
      uint64_t seed, uint32_t input_stall, uint32_t output_stall, int64_t first_copy, int64_t patience,
      int64_t most, int64_t* busy, const Trace& trace)
      : share(share), inputs(inputs), index(index), outputs(outputs), input_stall(input_stall),
        output_stall(output_stall), patience(patience), most(most), busy(busy), trace(trace),
        active((share.active + BYTES - 1) / BYTES * BYTES),
        input_stalls(seed, first_copy, INPUT_SIDE, active),
        output_stalls(seed, first_copy, OUTPUT_SIDE, active),
        input(share.input_first, share.input_count, share.stride, active),
        output(share.output_first, share.output_count, share.stride, active) {
    reset(m);
    m.o_ready = ONES;
    valid = input.more();
    for (int l = 0; l < COPIES; l++) {
      busy[l] = 0;
      unfinished += share.output_count[l] > 0;
    }
  }

  // Goes on for about SLICE. Returns the number of cycles, or UNFINISHED, or STUCK when nothing has
  // moved for `patience` cycles or a copy has not finished in `most`, TOO_MANY when a copy has given
  // more than it should, BEYOND when an item has a value beyond its field.
  int64_t advance() {
    const auto end = Clock::now() + SLICE;
    while (unfinished && cycle - moved <= patience && cycle < most) {
      one_cycle();
      if (cycle % 16 == 0 && Clock::now() > end) return UNFINISHED;
    }
    if (any(m.beyond)) return BEYOND;
    bool too_many = false;
    for (int l = 0; l < active; l++)
      if (output.left[l] < 0) busy[l] = -1, too_many = true;
    return unfinished ? STUCK : too_many ? TOO_MANY : cycle;
  }

  void one_cycle() {
    if (fresh) load(m, inputs, index, input.rows(valid, 0, buffer));
    m.i_valid = valid;
    if (input_stall | output_stall) {
      m.i_valid = valid & (pending | ~input_stalls.next(input_stall));
      m.o_ready = ~output_stalls.next(output_stall);
    }
    step(m);
    if (cycle < trace.cycles) record(trace, cycle, m);
    V took = m.i_valid & m.i_ready, gave = m.o_valid & m.o_ready;
    pending = m.i_valid & ~took;
    cycle++;
    fresh = any(took);
    if (fresh) {
      moved = cycle;
      if (input.advance(took)) valid = input.more();
    }
    if (any(gave)) {
      moved = cycle;
      store(m, outputs, output.rows(gave, share.trash, buffer));
      if (output.advance(gave)) finish();
    }
  }

  // Notes which copies have given their last output.
  void finish() {
    for (int l = 0; l < active; l++)
      if (output.left[l] <= 0 && share.output_count[l] && !busy[l]) {
        busy[l] = cycle;
        unfinished--;
      }
  }
};

extern "C" {
int64_t axs6_copies() { return COPIES; }

// Bytes that a run takes, wherever they begin.
int64_t axs6_memory() { return sizeof(Run) + alignof(Run); }

// Prepares a run in `memory`. What it is given must stay until its end.
Run* axs6_begin(uintptr_t memory, const Share* share, const void* const* inputs, const int32_t* const* index,
                void* const* outputs, uint64_t seed, uint32_t input_stall, uint32_t output_stall,
                int64_t first_copy, int64_t patience, int64_t most, int64_t* busy, int64_t traced,
                uint8_t (*handshake)[4], void* const* payload) {
  void* place = (void*)((memory + alignof(Run) - 1) / alignof(Run) * alignof(Run));
  return new (place) Run(*share, inputs, index, outputs, seed, input_stall, output_stall, first_copy,
                         patience, most, busy, {traced, handshake, payload});
}

// Goes on with it, as Run::advance, and says in which cycle it is.
int64_t axs6_advance(Run* run, int64_t* cycle) {
  int64_t outcome = run->advance();
  *cycle = run->cycle;
  return outcome;
}
}
