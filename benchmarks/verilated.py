"""Verilator's models of units, driven by a loop in C++, beside which simulators are measured."""

import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from axs6.hw.core.layouts import port_fields
from axs6.hw.registry import find
from axs6.hw.verilog import generate
from axs6.sim.compiled import element_type
from axs6.sim.tools import check_simulator, simulator_environment
from axs6.sim.words import to_words

MOST_RANDOM = 50_000
"""Items that are random; more repeat them."""

HARNESS = """
#include "V{module}.h"
#include <chrono>
#include <cstdio>
#include <vector>
int main(int argc, char** argv) {{
  const int items = atoi(argv[2]), words = {words};
  std::vector<uint32_t> data(size_t(words) * items);
  FILE* file = fopen(argv[1], "rb");
  if (!file || fread(data.data(), 4, data.size(), file) != data.size()) return 1;
  V{module} model;
  uint64_t sum = 0;
  auto cycle = [&](bool reset, bool valid) {{
    model.rst = reset, model.i_valid = valid, model.clk = 0, model.eval();
    if (!reset && model.o_valid) sum = sum * 31 + model.o_payload;
    model.clk = 1, model.eval();
  }};
  model.o_ready = 1;
  for (int round = 0; round < 2; round++) {{
    cycle(true, false);
    sum = 0;
    auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < items; n++) {{
      const uint32_t* item = &data[size_t(n) * words];
      for (int w = 0; w < words; w++) model.i_payload[w] = item[w];
      cycle(false, true);
    }}
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    for (int n = 0; n < {latency}; n++) cycle(false, false);
    if (round == 1) printf("%.9f %lu\\n", seconds.count(), (unsigned long)sum);
  }}
}}
"""
"""Two rounds over all items, the second of which counts. Payloads out have at most 64 bits."""

Parameters = Mapping[str, Any]


def random_items(unit: str, parameters: Parameters, count: int) -> dict[str, Any]:
    """Random items in the dtypes of the unit's fields."""
    rng = np.random.default_rng(0)
    settings = find(unit).parameters(parameters)
    items = find(unit).random(settings, rng, min(count, MOST_RANDOM))
    repeats = -(-count // MOST_RANDOM)
    inputs, _ = port_fields(find(unit).build(**settings))
    types = {field.name: element_type(field) for field in inputs}
    return {
        name: np.concatenate([array.astype(types[name])] * repeats)[:count]
        for name, array in items.items()
    }


def verilator(
    folder: Path, unit: str, parameters: Parameters, count: int, pool: ThreadPoolExecutor
) -> Callable[[], float]:
    """Start to build the model with its loop; the function runs it, for cycles a second."""
    check_simulator("verilator")
    folder.mkdir()
    made = generate(unit, **parameters)
    width = next(each["width"] for each in made.manifest["streams"] if each["name"] == "i")
    latency, size = made.manifest["latency"], -(-width // 32)
    (folder / "unit.v").write_text(made.verilog)
    (folder / "main.cpp").write_text(
        HARNESS.format(module=made.module, words=size, latency=latency)
    )
    items = random_items(unit, parameters, count)
    words = to_words(items, made.inputs)
    (folder / "items.bin").write_bytes(
        b"".join(word.to_bytes(4 * size, "little") for word in words)
    )
    flags = ["-MAKEFLAGS", "OPT_FAST='-O3 -march=native'"]
    options = ["-O3", "--x-assign", "fast", "-Wno-fatal", *flags, "--build-jobs", "2"]
    command = ["verilator", "--cc", "--exe", "--build", *options, "unit.v", "main.cpp"]
    command += ["--top-module", made.module]
    build = pool.submit(
        subprocess.run,
        command,
        cwd=folder,
        env=simulator_environment("verilator"),
        check=True,
        capture_output=True,
        timeout=600,
    )
    program = [str(folder / "obj_dir" / f"V{made.module}"), "items.bin", str(len(words))]
    expected = 0
    results = find(unit).golden(items, find(unit).parameters(parameters))
    for word in to_words(results, made.outputs):
        expected = (expected * 31 + word) % (1 << 64)

    def run() -> float:
        build.result()
        done = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True)
        seconds, checksum = done.stdout.split()
        if int(checksum) != expected:
            raise SystemExit(f"Verilator's outputs of {made.module} differ from the golden model")
        return len(words) / float(seconds)

    return run
