import pytest

from axs6.golden.check.exact.sequences import (
    STATE,
    draw,
    encode_with_feedback,
    lane_seeds,
    leap,
    step,
)


@pytest.mark.parametrize(
    ("state", "following"),
    [
        (1, 3),
        (2, 5),
        (3, 6),
        (1 << 20, 1 << 21),
        (1 << 21, 1 << 22 | 1),
        (1 << 31, 1),
        (STATE, STATE - 1),
    ],
)
def test_steps(state, following):
    assert step(state) == following


@pytest.mark.parametrize("steps", [0, 1, 31, 32, 33, 1000])
def test_a_leap_is_its_steps(steps):
    state = 0xDEADBEEF
    for _ in range(steps):
        state = step(state)
    assert leap(0xDEADBEEF, steps) == state


def test_a_period_of_steps_is_none():
    assert leap(0x12345678, STATE) == 0x12345678


def test_draws():
    assert lane_seeds(1, 7) == [7]
    # Of 7 both bits 1 and 0 are set, of 14 bit 1 alone: 14 and 29 follow.
    assert draw([7], 1, 3) == ([1, 0, 1], [step(29)])
    assert draw([1, 2], 4, 1) == ([1, 2], [leap(1, 4), leap(2, 4)])


def test_feedback_of_one_step():
    # 1 + 2^-5 below a scale of 2: 15.98 of 31, so the code is 16 and the error is 1 + 2^-5 - 32/31.
    x, error = 0x3F800000, 0x3D000000
    fed = encode_with_feedback([x] + [0] * 7, [error] + [0] * 7, "nearest", "dense")
    assert (fed.mode, fed.block) == (0, (128, [16] + [0] * 7))
    assert fed.errors[1:] == [0] * 7
    # 32/31 is 0x3f842108 in FP32; 1 + 2^-5 is 0x3f840000, so -0x2108 steps of 2^-23 are left.
    assert fed.errors[0] == 0x80000000 | (127 - 23 + 13) << 23 | (0x2108 - 0x2000) << 10
    infinite = encode_with_feedback([0x7F800000] * 8, [0] * 8, "nearest", "high_precision")
    assert (infinite.block, infinite.errors) == ((255, [63, 15] * 4), [0] * 8)
