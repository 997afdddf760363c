"""Waveforms of regressions hold what the golden model gives, in files that others read."""

import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.integration import stream_ports
from axs6.hw.registry import ALL_UNITS, find
from axs6.hw.verilog import generate
from axs6.sim.bench.launch import FST_HEADERS
from axs6.sim.regress import regress
from axs6.sim.tools import simulator_environment
from axs6.sim.waves import named_fields, signal_bits, wave_size
from axs6.sim.words import from_words, to_words

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")


@pytest.mark.parametrize(
    "simulator",
    [
        pytest.param("icarus", marks=WITH_ICARUS),
        pytest.param("verilator", marks=pytest.mark.slow),
    ],
)
def test_waveforms_hold_what_happened(simulator: str, tmp_path: Path) -> None:
    parameters = {"block": 8, "lfsr_seed": 1}
    folder = tmp_path / "waves"
    outcome = regress(
        "lfsr", parameters, simulator=simulator, items=300, waves=folder, test="full_rate"
    )
    assert [test.name for test in outcome.tests] == ["full_rate"]
    (path,) = folder.iterdir()
    assert path.name == "lfsr-block8-random_bits16-lfsr_seed1-stages0.fst"
    made = generate("lfsr", **parameters)
    items = from_words(transfers(path, made.module, "i"), made.inputs)
    words = transfers(path, made.module, "o")
    assert len(words) == 300
    expected = find("lfsr").golden(items, made.manifest["parameters"])
    assert words == to_words(expected, made.outputs)


@pytest.mark.slow
def test_verilators_waveforms_have_the_fields_of_payloads_by_name(tmp_path: Path) -> None:
    parameters = {"block": 8, "rows": 2, "columns": 1}
    regress("matmul", parameters, items=50, waves=tmp_path, test="full_rate")
    (path,) = tmp_path.iterdir()
    made = generate("matmul", **parameters)
    words = transfers(path, made.module, "i")
    items = from_words(words, made.inputs)
    top = f"{made.module}.fields.i.payload"
    for row, lane in ((0, 0), (1, 5)):
        name = f"{top}.a.codes.[{row}].codes[{row}][{lane}]"
        assert transfers(path, made.module, "i", name) == items["a.codes"][:, row, lane].tolist()
    assert transfers(path, made.module, "i", f"{top}.last") == items["last"].tolist()


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(unit, marks=[pytest.mark.slow] * (unit not in ("dot", "lfsr", "axis_decoder")))
        for unit in ALL_UNITS
    ],
)
def test_verilator_reads_the_names_of_every_unit(unit: str, tmp_path: Path) -> None:
    words = {"view": BEHAVIOUR} if "view" in ALL_UNITS[unit].defaults else {}
    made = generate(unit, block=8, **words)
    ports = [port for stream in made.manifest["streams"] for port in stream_ports(stream)]
    declared = ", ".join(f"input [{width - 1}:0] {port}" for port, width in ports)
    (tmp_path / "t.v").write_text(
        f"module {made.module}({declared});\nendmodule\n{named_fields(made)}"
    )
    done = subprocess.run(
        ["verilator", "--lint-only", "t.v"],
        env=simulator_environment("verilator"),
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def transfers(path: Path, module: str, stream: str, shown: str | None = None) -> list[int]:
    """The words that a stream transfers, read from an FST file with pylibfst.

    Or what another signal, `shown`, has when they move.
    """
    import pylibfst

    file = pylibfst.lib.fstReaderOpen(str(path).encode())
    _, signals = pylibfst.get_scopes_signals2(file)
    names = {name.partition(" ")[0]: signal.handle for name, signal in signals.by_name.items()}
    roles = ["clk", *(f"{stream}__{role}" for role in ("valid", "ready", "payload"))]
    handles = [names[f"{module}.{role}"] for role in roles]
    handles[-1] = handles[-1] if shown is None else names[shown]
    now = dict.fromkeys(handles, "0")
    before, words, latest = dict(now), [], 0
    changes: list[tuple[int, int, str]] = []

    def note(_: Any, time: int, handle: int, value: Any) -> None:
        changes.append((time, handle, pylibfst.string(value)))

    pylibfst.lib.fstReaderSetFacProcessMaskAll(file)
    pylibfst.fstReaderIterBlocks(file, note)
    pylibfst.lib.fstReaderClose(file)
    clk, valid, ready, payload = handles
    for time, handle, value in sorted(changes, key=lambda change: change[0]):
        if time > latest:
            before, latest = dict(now), time
        if handle not in now:
            continue
        # What a stream shows just before a rising edge is what moves at it.
        if handle == clk and value == "1" and before[valid] == before[ready] == "1":
            words.append(int(before[payload], 2))
        now[handle] = value
    return words


LZ4 = """
#include <cstdio>
#include <lz4.h>
int main() {
    std::vector<char> text, block;
    for (int c; (c = std::getchar()) != EOF;) text.push_back(static_cast<char>(c));
    block.resize(LZ4_compressBound(static_cast<int>(text.size())));
    const int size = static_cast<int>(text.size()), room = static_cast<int>(block.size());
    const int used = LZ4_compress_default(text.data(), block.data(), size, room);
    std::fwrite(block.data(), 1, used, stdout);
}
"""


def decompressed(block: bytes) -> bytes:
    """What a block of LZ4 holds."""
    out, at = bytearray(), 0

    def length(start: int) -> int:
        nonlocal at
        total = start
        while start == 15:
            total += block[at]
            at += 1
            if block[at - 1] < 255:
                break
        return total

    while True:
        token, at = block[at], at + 1
        count = length(token >> 4)
        out += block[at : at + count]
        at += count
        if at == len(block):
            return bytes(out)
        offset, at = int.from_bytes(block[at : at + 2], "little"), at + 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-offset])


def test_blocks_for_waveforms_are_lz4(tmp_path: Path) -> None:
    (tmp_path / "lz4.cpp").write_text(LZ4)
    program = tmp_path / "lz4"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    sources = [f"-I{FST_HEADERS}", str(tmp_path / "lz4.cpp")]
    subprocess.run(["g++", *flags, *sources, "-o", program], check=True)
    rng = random.Random(1)
    texts = [b"a" * n for n in (0, 1, 12, 13, 18, 19, 20, 300, 70_000)]
    texts += [rng.randbytes(n) for n in (17, 70_000)]
    texts += [bytes(rng.choices(range(2), k=100_000)), rng.randbytes(1_000) * 150]
    for text in texts:
        done = subprocess.run([program], input=text, capture_output=True, check=True)
        assert decompressed(done.stdout) == text
        # No reader takes a match that ends in the last five bytes.
        assert done.stdout[-5:] == text[-5:] or len(text) < 5
        assert len(done.stdout) <= len(text) + len(text) // 255 + 16
    assert len(done.stdout) < 5_000


def test_the_size_of_waveforms_is_known_beforehand() -> None:
    made = generate("lfsr", block=8)
    text = """
module \\top.inner (a, b);
  input a;
  wire a;
  output [7:0] b;
  reg [7:0] b;
endmodule

module top(a, b);
  input a;
  wire a;
  wire [15:0] b;
  \\top.inner  one (
    .a(a)
  );
  \\top.inner  two (
    .a(a)
  );
endmodule
"""
    assert signal_bits(replace(made, module="top", verilog=text)) == 17 + 2 * 9
    bits = signal_bits(made)
    assert bits > 8 * 32 + 8 * 16
    assert wave_size(made, 1000, "full_rate") == 100 * bits
    assert wave_size(made, 1000, "random_stalls") == 40 * bits
    assert wave_size(made, 1000) > 140 * bits
