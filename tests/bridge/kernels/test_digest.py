import numpy as np
import pytest

from axs6.torch import kernels
from axs6.torch.kernels.library import PART


def digest(x: np.ndarray, threads: int = 1) -> bytes:
    return kernels.digest(x.ctypes.data, x.nbytes, threads)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("size", [1, 7, 8, 255, 256, 257, 600])
def test_a_flip_of_any_bit_shows(size: int, rng: np.random.Generator) -> None:
    x = rng.integers(0, 256, size, np.uint8)
    found = {digest(x)}
    for place in range(size):
        for bit in range(8):
            x[place] ^= 1 << bit
            found.add(digest(x))
            x[place] ^= 1 << bit
    assert len(found) == 1 + 8 * size
    assert digest(x) in found


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("distance", [1, 2, 3, 32, 64, 128, PART // 4])
def test_changes_of_two_values_show(dtype: type, distance: int, rng: np.random.Generator) -> None:
    values = rng.standard_normal(PART // 4 + 2048).astype(dtype)
    values[5] = 2.5
    first = digest(values)
    changes = [np.negative, lambda x: x * 2, lambda x: x / 2, lambda x: x + 1, np.zeros_like]
    found = set()
    for one in changes:
        for other in changes:
            x = values.copy()
            x[5], x[5 + distance] = one(x[5]), other(x[5 + distance])
            found.add(digest(x))
    x = values.copy()
    x[[5, 5 + distance]] = x[[5 + distance, 5]]
    found.add(digest(x))
    assert first not in found
    assert len(found) == len(changes) ** 2 + 1


def test_every_form_and_number_of_threads_gives_the_same(rng: np.random.Generator) -> None:
    x = rng.standard_normal(5 * PART + 3).astype(np.float32)
    found = set()
    for form in kernels.FORMS:
        with kernels.use(form):
            if kernels.chosen() is not None:
                found |= {digest(x, threads) for threads in (1, 2, 3)}
    assert len(found) == (kernels.chosen() is not None)


@pytest.mark.usefixtures("form")
def test_where_the_bytes_lie_and_how_many_there_are(rng: np.random.Generator) -> None:
    x = rng.integers(0, 256, 3000, np.uint8)
    y = np.zeros(3001, np.uint8)
    y[1:] = x
    assert digest(x) == digest(y[1:])
    assert digest(x[:0]) == b""
    assert len(digest(x)) == 256
