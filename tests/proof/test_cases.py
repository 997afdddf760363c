"""Cases in words, and numbers of many cases, against Python's integers."""

import numpy as np
import pytest

from axs6.proof.cases import WIDTH_MAX, Numbers, cases_of, counting, words_of


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_words(count: int) -> None:
    bits = np.random.default_rng(count).integers(0, 2, count, np.uint8)
    words = words_of(bits)
    assert words.shape == (-(-count // 64),)
    assert [int(words[k // 64]) >> k % 64 & 1 for k in range(count)] == bits.tolist()
    assert sum(int(word).bit_count() for word in words) == bits.sum()


@pytest.mark.parametrize("count", [0, 1, 3, 6, 7])
def test_all_cases(count: int) -> None:
    words = counting(range(2, 2 + 2 * count, 2))
    values = [cases_of(words[literal], count).tolist() for literal in sorted(words)]
    assert [len(each) for each in values] == [1 << count] * count
    assert [sum(each[j] << k for k, each in enumerate(values)) for j in range(1 << count)] == (
        list(range(1 << count)) if count else [0]
    )


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 95, WIDTH_MAX])
def test_numbers_of_many_cases(width: int) -> None:
    modulus, rng = 1 << width, np.random.default_rng(width)
    expected = [0] * 8
    numbers = Numbers.zeros(8, width)
    for place in range(40):
        bits = rng.integers(0, 2, 8, np.uint8)
        times = int.from_bytes(rng.bytes(12), "little") % modulus if place else modulus - 1
        numbers.add(bits, times)
        expected = [
            (x + bit * times) % modulus for x, bit in zip(expected, bits.tolist(), strict=True)
        ]
    assert [numbers.at(k) for k in range(8)] == expected
    wanted = np.array([x + modulus * (k - 2) for k, x in enumerate(expected)], object)
    assert numbers.equal(Numbers.of(wanted, width)).all()
    for change in {1, modulus >> 1}:
        wanted[3] = expected[3] + change
        assert numbers.equal(Numbers.of(wanted, width)).tolist() == [k != 3 for k in range(8)]
