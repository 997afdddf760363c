"""In-order comparison of what a unit gives with what the golden model expects."""

from collections.abc import Sequence

from axs6.hw.layouts import Field
from axs6.sim.words import from_words


class Checker:
    """Compares words, bit for bit and in order.

    Args:
        expected: the words that the unit must give.
        fields: the payload's fields, to say which of them differs.
    """

    def __init__(self, expected: Sequence[int], fields: Sequence[Field]) -> None:
        self._expected = expected
        self._fields = fields
        self.cycles: list[int] = []

    def take(self, word: int, cycle: int) -> None:
        """Compare the next word, which was transferred in `cycle`.

        Raises:
            AssertionError: it differs, or nothing more was expected.
        """
        index = len(self.cycles)
        if index >= len(self._expected):
            raise AssertionError(f"output {index} was not expected: {word:#x}")
        if word != self._expected[index]:
            raise AssertionError(f"output {index}: {self._difference(word, index)}")
        self.cycles.append(cycle)

    @property
    def missing(self) -> int:
        """How many words are still expected."""
        return len(self._expected) - len(self.cycles)

    def _difference(self, word: int, index: int) -> str:
        came = from_words([word], self._fields)
        needed = from_words([self._expected[index]], self._fields)
        for field in self._fields:
            for lane, (a, b) in enumerate(
                zip(came[field.name].ravel(), needed[field.name].ravel(), strict=True)
            ):
                if a != b:
                    place = f"{field.name}[{lane}]" if field.shape else field.name
                    digits = -(-field.width // 4)
                    return f"{place} is {a:#0{digits + 2}x}, the golden model gives {b:#x}"
        return "padding bits are set"
