"""Stages of an encoder of real and integer scales: steps that make fields, past which others go."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.golden.formats import FP32, Real
from axs6.hw.core.layouts import outer_names, scale_names, values_layout
from axs6.hw.core.pipeline import Step, past
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import value_lane

Fields = dict[str, Any]


def given_layout(scheme: Scaled) -> data.StructLayout:
    """Input: the scale of the tensor or channel, if any, and the values."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    return StructLayout({**outer, **values_layout(scheme.lanes, scheme.dtype).members})


def passing(scheme: Scaled) -> Fields:
    """Data that bypasses the computation of the scales."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    lanes = ArrayLayout(value_lane(scheme), scheme.lanes)
    return {**outer, "values": lanes, "invalid": 1, "lost": 1}


def scale_field(scheme: Scaled) -> Fields:
    """The code of a block's scale, where there is one."""
    levels = zip(scale_names(scheme.fmt), scheme.fmt.blocked[::-1], strict=True)
    return {name: level.scale.bits for name, level in levels if level.scale == scheme.scale}


def found_fields(scheme: Scaled) -> Fields:
    """The fields that pass by the scale of a block; FP32 blocks of zeros have their own scale."""
    scale = scheme.scale
    has_own = isinstance(scale, Real) and scale.dtype == FP32
    return {**passing(scheme), **({"empty": 1} if has_own else {})}


class Stage(Step, ABC):
    """A step that makes some fields; all others of its output pass."""

    def __init__(self, scheme: Scaled, i: Mapping[str, Any], o: Fields, levels: int) -> None:
        self._scheme = scheme
        super().__init__(StructLayout(dict(i)), StructLayout(o), levels=levels)

    @abstractmethod
    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Drive some fields, and return their names."""

    def elaborate(self, platform: Any) -> Module:
        """Connect what passes."""
        m = Module()
        made = self.build(m, platform)
        names = [name for name in self.o.shape().members if name not in made]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]
        return m


def beside(steps: Sequence[Step], fields: Fields) -> list[Step]:
    """Steps that some fields pass by."""
    return past(steps, StructLayout(fields))
