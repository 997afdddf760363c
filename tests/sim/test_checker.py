"""The comparison of outputs says what differs first, and how many do."""

import pytest

from axs6.hw.core.layouts import Field
from axs6.sim.bench.checker import Checker

FIELDS = [Field("sum", 0, 5, False, ())]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([1, 2, 3], None),
        (
            [1, 7, 3],
            "output 1: sum is 0x07, the golden model gives 0x2 \\(1 of 3 outputs differ\\)",
        ),
        ([1, 3], "output 1: sum is .* \\(1 of 2 outputs differ, 1 outputs never came\\)"),
        ([1, 1, 2, 3], "output 1: sum is .* \\(3 of 4 outputs differ\\)"),
        ([1, 2, 3, 4], "output 3 was not expected: 0x4 \\(1 of 4 outputs differ\\)"),
        ([1, 2, 1 << 6 | 3], "output 2: padding bits are set \\(1 of 3 outputs differ\\)"),
        ([1], "2 outputs never came"),
    ],
)
def test_the_first_difference_and_their_number(words: list[int], message: str | None) -> None:
    checker = Checker([1, 2, 3], FIELDS)
    for cycle, word in enumerate(words):
        checker.take(word, cycle)
    assert checker.cycles == list(range(len(words)))
    if message is None:
        checker.check()
        return
    with pytest.raises(AssertionError, match=f"^{message}$"):
        checker.check()


@pytest.mark.parametrize(("width", "digits"), [(4, 1), (5, 2), (8, 2), (9, 3)])
def test_values_have_the_digits_of_their_field(width: int, digits: int) -> None:
    checker = Checker([0], [Field("sum", 0, width, False, ())])
    checker.take(1, 0)
    with pytest.raises(AssertionError, match=f"sum is 0x{1:0{digits}x}, the golden"):
        checker.check()
