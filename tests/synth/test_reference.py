"""The INT8 dot product and its quantisation."""

import numpy as np

from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.synth.reference import Int8Dot, int8_dot, quantise, sum_bits


def test_widths() -> None:
    assert [sum_bits(lanes) for lanes in (8, 16, 32)] == [19, 20, 21]
    assert 1 << sum_bits(32) - 1 > 32 * 128 * 128


def test_hardware_equals_numpy() -> None:
    rng = np.random.default_rng(0)
    items = {side: rng.integers(-128, 128, (5000, 32), np.int8) for side in "ab"}
    for side in "ab":
        items[side][:3] = -128
        items[side][3:50] = rng.choice(np.int8([-128, 127]), (47, 32))
    outputs = ComponentModel(component_source(Int8Dot(32)), "int8 dot").run(items).outputs
    assert int(outputs["sum"][0]) == 32 << 14
    assert np.array_equal(outputs["sum"], int8_dot(items)["sum"])


def test_quantise_is_symmetric() -> None:
    x = np.float32([[31.5, -127.0, 64.5], [0.0, 0.5, 1.5]])
    assert quantise(x).tolist() == [[32, -127, 64], [0, 0, 2]]
    assert quantise(x / 64).tolist() == quantise(x).tolist()
    assert quantise(-x).tolist() == (-quantise(x)).tolist()
    assert not quantise(np.zeros((2, 2), np.float32)).any()
