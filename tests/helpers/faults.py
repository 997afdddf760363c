"""Steps with a planted fault."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module

from axs6.hw.core.pipeline import Step


class FaultyStep(Step):
    """A step with a fault: `change` gives assignments that replace those of its output."""

    def __init__(self, step: Step, change: Callable[[Any, Any], list[Any]]) -> None:
        self._step, self._change = step, change
        super().__init__(step.i.shape(), step.o.shape(), levels=step.levels)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.right = self._step
        m.d.comb += [self._step.i.eq(self.i), self.o.eq(self._step.o)]
        m.d.comb += self._change(self.i, self.o)
        return m
