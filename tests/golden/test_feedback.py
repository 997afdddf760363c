import numpy as np
import pytest

from axs6.golden import decode, encode
from axs6.golden.feedback import encode_with_feedback


def test_the_error_is_what_was_lost():
    x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    blocks, error = encode_with_feedback(x, np.zeros_like(x), 16)
    assert np.array_equal(blocks.codes, encode(x, block=16).codes)
    assert np.array_equal(error, x - decode(blocks))
    again, left = encode_with_feedback(x, error, 16)
    assert np.array_equal(again.codes, encode(x + error, block=16).codes)
    assert np.array_equal(left, (x + error) - decode(again))


@pytest.mark.parametrize("options", [{}, {"rounding": "toward_zero"}, {"mode": "high_precision"}])
def test_the_mean_of_the_decoded_values_converges(options):
    """After n rounds the sum is off by one error at most: the mean's error falls as 1 / n."""
    x = np.random.default_rng(1).standard_normal(64).astype(np.float32)
    error, total = np.zeros_like(x), np.zeros(64)
    step = np.abs(x).max() / 15
    for n in range(1, 401):
        blocks, error = encode_with_feedback(x, error, **options)
        total += decode(blocks, np.float64)
        if n in (10, 100, 400):
            assert np.abs(total / n - x).max() <= 2 * step / n + 1e-6


def test_what_is_not_finite_leaves_no_error():
    x = np.array([np.inf, -np.inf, np.nan, 1, 3e38, 0, 0, 0], np.float32)
    error = np.array([0, 0, 0, 0, 3e38, 0, 0, 0], np.float32)
    blocks, left = encode_with_feedback(x, error, 8, nonfinite="saturate")
    assert blocks.codes.tolist() == [[31, 63, 0, 0, 31, 0, 0, 0]]
    assert left.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    with pytest.raises(ValueError, match=r"element \(0,\) is inf"):
        encode_with_feedback(x, error, 8)


def test_a_nan_that_spreads_over_its_block_leaves_no_error():
    x = np.array([[1.3, np.nan, 1, 1] + [0.1] * 28, [0.1] * 32], np.float32)
    blocks, left = encode_with_feedback(x, np.zeros_like(x), format="mxfp4", nonfinite="propagate")
    assert np.isnan(decode(blocks)[0]).all()
    assert left[0].tolist() == [0.0] * 32
    assert np.array_equal(left[1], x[1] - decode(blocks)[1])


def test_arguments():
    x = np.zeros(8, np.float32)
    with pytest.raises(TypeError, match=r"^error must be float32, not float64$"):
        encode_with_feedback(x, np.zeros(8))
    with pytest.raises(ValueError, match=r"^error must have the shape of x \(8,\), not \(9,\)$"):
        encode_with_feedback(x, np.zeros(9, np.float32))
    with pytest.raises(
        TypeError, match=r"^error must have no masked values: call filled\(\) first$"
    ):
        encode_with_feedback(x, np.ma.masked_array(x, x == 0))
