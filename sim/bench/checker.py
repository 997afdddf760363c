"""In-order comparison of a unit's outputs with the golden model's."""

from collections.abc import Sequence

from axs6.hw.core.layouts import Field
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
        self._differing = 0
        self._first: str | None = None
        self.cycles: list[int] = []

    def take(self, word: int, cycle: int) -> None:
        """Compare the next word, which was transferred in `cycle`."""
        index = len(self.cycles)
        expected = self._expected[index] if index < len(self._expected) else None
        if word != expected:
            self._differing += 1
            self._first = self._first or f"output {index}{self._difference(word, expected)}"
        self.cycles.append(cycle)

    @property
    def missing(self) -> int:
        """Number of words still expected."""
        return max(0, len(self._expected) - len(self.cycles))

    def check(self, never: str = "never came") -> None:
        """Raise AssertionError if words differ, are too many or are missing.

        The message has the first difference, since after a word that is missing or too many all
        others are compared with the wrong ones, and how many there are.

        Args:
            never: what is said of words that never came.
        """
        lost = f"{self.missing:,} outputs {never}"
        if self._first is not None:
            count = f"{self._differing:,} of {len(self.cycles):,} outputs differ"
            rest = f", {lost}" if self.missing else ""
            raise AssertionError(f"{self._first} ({count}{rest})")
        if self.missing:
            raise AssertionError(lost)

    def _difference(self, word: int, expected: int | None) -> str:
        if expected is None:
            return f" was not expected: {word:#x}"
        came = from_words([word], self._fields)
        needed = from_words([expected], self._fields)
        for field in self._fields:
            for lane, (a, b) in enumerate(
                zip(came[field.name].ravel(), needed[field.name].ravel(), strict=True)
            ):
                if a != b:
                    place = f"{field.name}[{lane}]" if field.shape else field.name
                    digits = -(-field.width // 4)
                    return f": {place} is {a:#0{digits + 2}x}, the golden model gives {b:#x}"
        return ": padding bits are set"
