// Streams through one copy of a design: handshakes, stalls, traces and waveforms.
//
// The generated model comes before this file: Top, MODULE, put_item, take_item, NamedFields.
#pragma once
#include <unistd.h>

#include <memory>

#include "cxxrtl/cxxrtl_vcd.h"
#include "control.hpp"
#include "stalls.hpp"

enum Outcome : int64_t { STUCK = -1, TOO_MANY = -2, UNWRITABLE = -3 };

constexpr int64_t PERIOD = 10;     // nanoseconds of a clock cycle in waveforms
constexpr int64_t AFTERWARDS = 64; // cycles after the last output, in which none may come
constexpr size_t BUFFER = 1 << 20; // bytes of a waveform that are kept before they are written

// What the ports showed in the first `cycles` cycles.
struct Trace {
  int64_t cycles;
  uint8_t (*handshake)[4];
  void* const* payload;
};

// A waveform of every signal and of the payloads' fields, in the cycles from `first` to before
// `end`; file -1 for none.
class Waveform {
  const Top& top;
  int64_t first, end;
  int file;
  cxxrtl::debug_items items;
  cxxrtl::vcd_writer writer;
  NamedFields fields;

  bool flush() {
    for (size_t written = 0; written < writer.buffer.size();) {
      auto count = write(file, writer.buffer.data() + written, writer.buffer.size() - written);
      if (count < 0) return false;
      written += count;
    }
    writer.buffer.clear();
    return true;
  }

 public:
  Waveform(Top& top, int64_t first, int64_t end, int file)
      : top(top), first(first), end(end), file(file) {
    if (file < 0) return;
    top.debug_info(&items, nullptr, MODULE " ");
    fields.add(items);
    writer.timescale(1, "ns");
    writer.add(items);
  }
  bool covers(int64_t cycle) const { return file >= 0 && cycle >= first && cycle < end; }
  void sample(int64_t time) {
    fields.update(top);
    writer.sample(time);
  }
  bool flush_if_full() { return writer.buffer.size() < BUFFER || flush(); }
  // The end of the last cycle, which would have no width without it.
  bool finish(int64_t cycle) {
    if (file < 0 || cycle <= first) return true;
    writer.buffer += "#" + std::to_string(std::min(cycle, end) * PERIOD) + "\n";
    return flush();
  }
};

class Simulation {
  std::unique_ptr<Top> top{new Top};
  bool feedback;

 public:
  Simulation() { feedback = !top->eval(); }

  bool i_valid() const { return (bool)top->p_i__valid; }
  bool i_ready() const { return (bool)now(top->p_i__ready); }
  bool o_valid() const { return (bool)now(top->p_o__valid); }
  bool o_ready() const { return (bool)top->p_o__ready; }
  Top& design() { return *top; }

  // Ports and registers' next values, with registers as they are: evaluated on a rising edge of
  // the clock that is not yet committed. Feedback takes several rounds, which must not be clocked.
  void settle(bool valid, bool ready) {
    top->p_i__valid.set(valid);
    top->p_o__ready.set(ready);
    if (feedback) top->step();
    top->p_clk.set(true);
    top->eval();
  }
  void lower_clock() { top->p_clk.set(false); }
  void advance() { top->commit(); }
  void record(const Trace& trace, int64_t cycle) {
    bool bits[] = {i_valid(), i_ready(), o_valid(), o_ready()};
    std::copy(bits, bits + 4, trace.handshake[cycle]);
    take_item(*top, trace.payload, cycle);
  }
};

// Runs until the last output has been taken or `limit` cycles have passed, and returns the cycles
// up to then or an Outcome. `given` becomes the number of outputs.
static int64_t run(int64_t items, int64_t results, const void* const* inputs, void* const* outputs,
                   uint64_t seed, uint32_t input_share, uint32_t output_share, int64_t copy,
                   int64_t patience, const Trace& trace, int64_t first, int64_t end, int file,
                   int64_t limit, int64_t& given) {
  Simulation simulation;
  Waveform waveform(simulation.design(), first, end, file);
  uint32_t input_stalls = first_stall_state(seed, copy, INPUT_SIDE);
  uint32_t output_stalls = first_stall_state(seed, copy, OUTPUT_SIDE);
  int64_t sent = 0, cycle = 0, moved = 0;
  bool pending = false, fresh = true;
  for (given = 0; given < results && cycle < limit; cycle++) {
    if (fresh && sent < items) put_item(simulation.design(), inputs, sent);
    bool input_stalled = next_stall(input_stalls, input_share);
    bool output_stalled = next_stall(output_stalls, output_share);
    simulation.settle(sent < items && (pending || !input_stalled), !output_stalled);
    if (cycle < trace.cycles) simulation.record(trace, cycle);
    if (waveform.covers(cycle)) waveform.sample(cycle * PERIOD);
    bool took = simulation.i_valid() && simulation.i_ready();
    bool gave = simulation.o_valid() && simulation.o_ready();
    if (gave) take_item(simulation.design(), outputs, given);
    pending = simulation.i_valid() && !took;
    simulation.lower_clock();
    if (waveform.covers(cycle)) waveform.sample(cycle * PERIOD + PERIOD / 2);
    if (!waveform.flush_if_full()) return UNWRITABLE;
    simulation.advance();
    sent += took;
    given += gave;
    fresh = took;
    if (took || gave) moved = cycle;
    if (cycle - moved > patience || stopped(cycle)) return STUCK;
  }
  for (int64_t after = 0; given == results && after < AFTERWARDS; after++) {
    simulation.settle(false, true);
    if (simulation.o_valid()) return TOO_MANY;
    simulation.lower_clock();
    simulation.advance();
  }
  return waveform.finish(cycle) ? cycle : UNWRITABLE;
}

extern "C" __attribute__((visibility("default"))) int64_t
axs6_run(int64_t items, int64_t results, const void* const* inputs, void* const* outputs,
         uint64_t seed, uint32_t input_share, uint32_t output_share, int64_t copy, int64_t patience,
         int64_t traced, uint8_t (*handshake)[4], void* const* payload, int64_t first, int64_t end,
         int file, int64_t limit, int64_t* given) {
  Trace trace{traced, handshake, payload};
  return run(items, results, inputs, outputs, seed, input_share, output_share, copy, patience, trace,
             first, end, file, limit, *given);
}
