// How the thread that waits for a compiled loop stops it, and sees how far it has come.
//
// The loop calls stopped(cycle) in each cycle and ends where that is true; what it returns then
// counts for nothing.
#pragma once
#include <atomic>
#include <cstdint>

struct Control {
  std::atomic<int32_t> stop;
  std::atomic<int64_t> cycle;
};

static thread_local Control* control = nullptr;

// Whether to stop, looked at now and then.
static inline bool stopped(int64_t cycle) {
  if (cycle & 15 || !control) return false;
  control->cycle.store(cycle, std::memory_order_relaxed);
  return control->stop.load(std::memory_order_relaxed);
}

// Sets what the loops of this thread look at, or none.
extern "C" __attribute__((visibility("default"))) void axs6_control(Control* given) {
  control = given;
}
