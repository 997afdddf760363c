// Streams through many copies of a design: handshakes, stalls, and which copy works on what.
//
// The generated model comes before this file: State, In, Out, reset, step, load, store.
#pragma once

// One copy's items lie at rows first, first + stride, ...; so do its outputs.
struct Share {
  int64_t input_first[LANES], input_count[LANES];
  int64_t output_first[LANES], output_count[LANES];
  int64_t stride;
  int64_t trash;  // a row of the output arrays that nobody reads
};

// Pseudo-random stalls for each copy: 8 new bits a cycle, against a threshold in 256.
struct Stalls {
  uint32_t state[LANES];
  void seed(uint64_t seed, uint64_t stream) {
    for (int l = 0; l < LANES; l++) {
      uint64_t z = seed * 0x9e3779b97f4a7c15u + (stream * LANES + l + 1) * 0xbf58476d1ce4e5b9u;
      z = (z ^ z >> 30) * 0x94d049bb133111ebu;
      state[l] = (uint32_t)(z >> 32) | 1;
    }
  }
  void next(uint8_t* stalled, uint32_t threshold) {
    for (int l = 0; l < LANES; l++) {
      uint32_t x = state[l];
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
      state[l] = x;
      stalled[l] = (x >> 12 & 255) < threshold ? 255 : 0;
    }
  }
};

INLINE bool all_true(const V<8>& x) {
  uint64_t words[LANES / 8], all = ~0ull;
  memcpy(words, &x, sizeof words);
  for (int i = 0; i < LANES / 8; i++) all &= words[i];
  return all == ~0ull;
}

// Runs every copy until it has given its last output. Returns the number of cycles, or -1 when
// nothing has moved for `patience` cycles. busy[l] counts the cycles until copy l had finished.
template <bool STALLING>
static int64_t run_copies(const Share& share, const void* const* inputs,
                          const int32_t* const* index, void* const* outputs,
                          uint64_t seed, uint32_t input_stall, uint32_t output_stall,
                          int64_t patience, int64_t* busy) {
  State state;
  In in;
  Out out;
  reset(state);
  memset(&in, 0, sizeof in);
  Stalls input_stalls, output_stalls;
  input_stalls.seed(seed, 0);
  output_stalls.seed(seed, 1);
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
                 void* const* outputs, uint64_t seed, uint32_t input_stall,
                 uint32_t output_stall, int64_t patience, int64_t* busy) {
  auto run = input_stall | output_stall ? run_copies<true> : run_copies<false>;
  return run(*share, inputs, index, outputs, seed, input_stall, output_stall, patience, busy);
}
}
