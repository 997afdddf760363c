"""Buses of a unit on AXI4-Stream, for cocotb: cocotbext-axi drives them, and a watch sees that
their masters keep the rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never

from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.hw.verilog import stream_fields
from axs6.sim.bench.stream import cycle
from axs6.sim.words import to_words


@dataclass(frozen=True)
class Bus:
    """A bus, whose beats are words: the data, then `last` and `user`.

    Args:
        name: what its signals begin with, such as "s_axis_a".
        width: bits of its data.
        fields: of a beat, named as the golden model's items: those of "s_axis_a" begin with "a.".
    """

    name: str
    width: int
    fields: list[Field]

    @classmethod
    def of(cls, manifest: Mapping[str, Any], name: str) -> "Bus":
        """The bus called `name` in a manifest."""
        width = next(each["width"] for each in manifest["streams"] if each["name"] == name)
        side = name.partition("_axis")[2].removeprefix("_")
        prefix = f"{side}." if side else ""
        marks = [Field(mark, width + k, 1, False, ()) for k, mark in enumerate(("last", "user"))]
        found = [*stream_fields(manifest, name), *marks]
        return cls(
            name,
            width,
            [Field(f"{prefix}{f.name}", f.offset, f.width, f.signed, f.shape) for f in found],
        )

    def words(self, items: Mapping[str, NDArray[Any]]) -> list[int]:
        """The beats for items, which may have fields of other buses too."""
        return to_words({field.name: items[field.name] for field in self.fields}, self.fields)

    def frames(self, words: Sequence[int]) -> Iterator[AxiStreamFrame]:
        """Packets of beats, each a list with an element for each beat."""
        data: list[int] = []
        user: list[int] = []
        for word in words:
            data.append(word & (1 << self.width) - 1)
            user.append(word >> self.width + 1)
            if word >> self.width & 1:
                yield AxiStreamFrame(data, tuser=user)
                data, user = [], []

    def beats(self, frame: AxiStreamFrame) -> Iterator[int]:
        """The words of a packet."""
        final = len(frame.tdata) - 1
        for k, (value, user) in enumerate(zip(frame.tdata, frame.tuser, strict=True)):
            yield value | (k == final) << self.width | user << self.width + 1

    def source(self, dut: Any) -> AxiStreamSource:
        """Drives the bus."""
        return _quiet(AxiStreamSource(*self._on(dut), byte_lanes=1))

    def sink(self, dut: Any) -> AxiStreamSink:
        """Takes what the bus gives."""
        return _quiet(AxiStreamSink(*self._on(dut), byte_lanes=1))

    def _on(self, dut: Any) -> tuple[AxiStreamBus, Any, Any]:
        return AxiStreamBus.from_prefix(dut, self.name), dut.clk, dut.rst


def _quiet(end: Any) -> Any:
    """Without a line of log for every packet."""
    end.log.setLevel("WARNING")
    return end


class Watch:
    """Watches a bus: the cycles of its transfers, and the rules of AXI4-Stream for its master.

    Once `tvalid` is up it must stay, and the beat with it, until the beat is taken.
    """

    def __init__(self, dut: Any, name: str) -> None:
        self._clock, self._reset, self._name = dut.clk, dut.rst, name
        self._valid, self._ready, *self._beat = (
            getattr(dut, f"{name}_t{part}") for part in ("valid", "ready", "data", "last", "user")
        )
        self.cycles: list[int] = []

    async def run(self) -> Never:
        """For ever: look at the bus just before each rising edge.

        Raises:
            AssertionError: `tvalid` fell or the beat changed before it was taken.
        """
        offered = None
        while True:
            await RisingEdge(self._clock)
            if self._reset.value == 1 or self._valid.value == 0:
                assert self._reset.value == 1 or offered is None, (
                    f"{self._name}: tvalid fell before the beat was taken"
                )
                offered = None
                continue
            beat = [int(signal.value) for signal in self._beat]
            assert offered in (None, beat), f"{self._name}: the beat changed before it was taken"
            taken = self._ready.value == 1
            offered = None if taken else beat
            if taken:
                self.cycles.append(cycle())
