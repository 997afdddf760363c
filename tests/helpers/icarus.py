"""Runs a module on items in Icarus Verilog, without stalls, and reads its signals."""

import subprocess
from pathlib import Path

from waves import Values, samples

from axs6.hw.verilog import Generated

PERIOD = 10

_BENCH = """
module bench;
  reg clk = 0, rst = 1;
  reg [{last}:0] items[0:{end}];
  integer n = 0;
  {module} dut(.clk(clk), .rst(rst), .{valid}(!rst), .{payload}(items[n]), .{ready}(1'b1));
  always #5 clk = ~clk;
  initial begin
    $readmemh("items.hex", items);
    $dumpfile("bench.vcd");
    $dumpvars(0, dut);
    #7 rst = 0;
    repeat ({end}) #{period} n = n + 1;
    #{period} $finish;
  end
endmodule
"""
"""Items change at 7, 17, ...; the clock rises at 5, 15, ..."""


def values_of(folder: Path, made: Generated, verilog: str, words: str) -> list[Values]:
    """The signals of a module just before the rising edge in each cycle that takes an item.

    Args:
        folder: for the files.
        made: the unit.
        verilog: text with its module.
        words: payloads as `$readmemh` reads them.
    """
    i, o = made.manifest["streams"]
    count = len(words.split())
    ports = {"valid": i["valid"], "payload": i["payload"], "ready": o["ready"]}
    numbers = {"last": i["width"] - 1, "end": count - 1, "period": PERIOD}
    folder.mkdir(exist_ok=True)
    (folder / "items.hex").write_text(words)
    (folder / "bench.v").write_text(_BENCH.format(module=made.module, **ports, **numbers) + verilog)
    for command in (["iverilog", "-o", "bench.vvp", "bench.v"], ["vvp", "bench.vvp"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    edges = range(15, 15 + count * PERIOD, PERIOD)
    return samples(folder / "bench.vcd", edges, "bench.dut")
