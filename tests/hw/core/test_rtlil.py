"""RTLIL of components with lanes."""

import pytest

from axs6.hw.core.pipeline import Pipeline, in_lanes
from axs6.hw.core.rtlil import convert
from axs6.hw.dot.pairwise import Flush, Only


def test_a_module_with_the_name_of_a_shared_one_is_refused() -> None:
    """Without a message one would take the place of the other."""
    lanes = [*in_lanes(lambda: [Flush()], 1), Only()]
    assert "module \\top.flush\n" in convert(Pipeline(lanes, 0), "top")
    with pytest.raises(ValueError, match=r"names of their own, not top\.flush twice"):
        convert(Pipeline([*lanes, Flush()], 0), "top")
