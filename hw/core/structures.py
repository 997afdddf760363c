"""Layouts of signals within units, which Amaranth describes as plain numbers.

By itself it makes a value for every field of every signal, for its simulator to print, and each
becomes a wire: that takes longer than the rest of a unit's construction. The layouts of payloads
(`axs6.hw.core.layouts`) are Amaranth's, so that waveforms name the fields of ports.
"""

from functools import cached_property

from amaranth.hdl import Format, Value
from amaranth.lib import data


class _Plain(data.Layout):
    @cached_property
    def size(self) -> int:
        """Bits of all fields, which Amaranth adds up anew in each use."""
        return int(super().size)

    def format(self, value: data.View, format_spec: str) -> Format:
        """The bits as one number."""
        return Format("{}", Value.cast(value))


class StructLayout(_Plain, data.StructLayout):
    """Amaranth's layout of fields, as plain numbers."""


class ArrayLayout(_Plain, data.ArrayLayout):
    """Amaranth's layout of an array, as plain numbers."""
