"""Beats and packets of a bus, and the watch over its master, without a simulator."""

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from axs6.hw.registry import BUS_UNITS
from axs6.hw.verilog import describe_streams
from axs6.sim.bench import axis
from axs6.sim.bench.axis import Bus, Watch


def test_packets_end_with_last() -> None:
    bus = Bus("s_axis", 8, [])
    words = [0x0FF, 0x200, 0x17F, 0x3A5, 0x080]
    first, second = bus.frames(words)
    assert (list(first.tdata), list(first.tuser)) == ([0xFF, 0x00, 0x7F], [0, 1, 0])
    assert (list(second.tdata), list(second.tuser)) == ([0xA5], [1])
    assert [*bus.beats(first), *bus.beats(second)] == words[:4]


def test_fields_of_a_beat() -> None:
    unit = BUS_UNITS["axis_dot"]
    manifest = {"streams": describe_streams(unit.build(**unit.parameters({"block": 8})))}
    for name, prefix in (("s_axis_a", "a."), ("m_axis", "")):
        bus = Bus.of(manifest, name)
        (width,) = [x["width"] for x in manifest["streams"] if x["name"] == name]
        last, user = bus.fields[-2:]
        assert (bus.name, bus.width) == (name, width)
        assert (last.name, last.offset, last.width) == (f"{prefix}last", width, 1)
        assert (user.name, user.offset, user.width) == (f"{prefix}user", width + 1, 1)
        assert all(field.name.startswith(prefix) for field in bus.fields)
        assert max(field.offset + field.width for field in bus.fields[:-2]) <= width


class End:
    """What drives a bus or takes from it, without a log line for each packet."""

    def __init__(self, *arguments: Any, byte_lanes: int) -> None:
        self.given = (*arguments, byte_lanes)
        self.log = logging.getLogger("axs6.tests.bus")


@pytest.mark.parametrize(
    ("end", "name"), [("source", "AxiStreamSource"), ("sink", "AxiStreamSink")]
)
def test_ends_have_the_signals_of_their_bus(
    end: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus_of = SimpleNamespace(from_prefix=lambda dut, prefix: (dut.clk, prefix))
    monkeypatch.setattr(axis, "AxiStreamBus", bus_of)
    monkeypatch.setattr(axis, name, End)
    found = getattr(Bus("s_axis", 16, []), end)(SimpleNamespace(clk="clock", rst="reset"))
    assert found.given == (("clock", "s_axis"), "clock", "reset", 1)
    assert found.log.level == logging.WARNING


class Edge:
    """Waits for the test."""

    def __init__(self, clock: Any) -> None:
        pass

    def __await__(self) -> Iterator[None]:
        yield


Step = Callable[..., None]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[Watch, Step]:
    """A watch, and a function that gives it a cycle with some values of the signals."""
    monkeypatch.setattr(axis, "RisingEdge", Edge)
    signals = {
        name: SimpleNamespace(value=0)
        for name in ("clk", "rst", *(f"m_t{x}" for x in ("valid", "ready", "data", "last", "user")))
    }
    watch, cycles = Watch(SimpleNamespace(**signals), "m"), iter(range(99))
    now = [0]
    monkeypatch.setattr(axis, "cycle", lambda: now[0])
    running = watch.run()
    running.send(None)

    def step(valid: int = 0, ready: int = 0, data: int = 0, user: int = 0, rst: int = 0) -> None:
        now[0] = next(cycles)
        for name, value in (("m_tvalid", valid), ("m_tready", ready), ("rst", rst)):
            signals[name].value = value
        signals["m_tdata"].value, signals["m_tuser"].value = data, user
        running.send(None)

    return watch, step


def test_cycles_of_transfers_are_counted(watched: tuple[Watch, Step]) -> None:
    watch, step = watched
    step(rst=1, valid=1, ready=1)
    step(ready=1)
    step(valid=1, data=7)
    step(valid=1, data=7)
    step(valid=1, ready=1, data=7)
    step(valid=1, ready=1, data=8)
    step(valid=1, data=9)
    step(rst=1)
    step(valid=1, ready=1, data=3)
    step()
    assert watch.cycles == [4, 5, 8]


def test_a_master_that_takes_a_beat_back_is_found(watched: tuple[Watch, Step]) -> None:
    _, step = watched
    step(valid=1, data=7)
    with pytest.raises(AssertionError, match=r"^m: tvalid fell before the beat was taken"):
        step(data=7)


@pytest.mark.parametrize("change", [{"data": 8}, {"data": 7, "user": 1}])
def test_a_beat_that_changes_is_found(watched: tuple[Watch, Step], change: dict[str, int]) -> None:
    _, step = watched
    step(valid=1, data=7)
    with pytest.raises(AssertionError, match=r"^m: the beat changed before it was taken"):
        step(valid=1, **change)
