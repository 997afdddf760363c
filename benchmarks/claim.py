"""A claim of a document in numbers, beside what this project measures.

A claim has one or more parts: it is true where all hold, false where none does, partly true
otherwise. A part that is claimed "about" holds within 10 %; one that is claimed in digits must
round to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

HERE = "python benchmarks/claims.py"


@dataclass(frozen=True)
class ClaimNumber:
    """A number of a claim.

    Args:
        measured: the project's.
        low, high: where it must lie, both ends included, for the claim to hold.
        digits: places after the point that are shown.
    """

    measured: float
    low: float
    high: float
    digits: int = 2

    @property
    def holds(self) -> bool:
        """Whether the claim is right in this."""
        return self.low <= self.measured <= self.high


def exactly(measured: float, claimed: float, digits: int) -> ClaimNumber:
    """A number that was claimed with so many places after the point."""
    half = 0.5 * 10**-digits
    return ClaimNumber(measured, claimed - half, claimed + half, digits)


def about(measured: float, claimed: float, digits: int = 2) -> ClaimNumber:
    """A number that was claimed roughly: within 10 %."""
    low, high = sorted((0.9 * claimed, 1.1 * claimed))
    return ClaimNumber(measured, low, high, digits)


def between(measured: float, low: float, high: float, digits: int = 2) -> ClaimNumber:
    """A number that was claimed to lie in a range."""
    return ClaimNumber(measured, low, high, digits)


@dataclass(frozen=True)
class Claim:
    """A claim of a document, and its test.

    Args:
        source: the document and its section.
        says: the claim, in short.
        parts: measures its numbers.
        unit: of the numbers.
        command: prints them.
    """

    source: str
    says: str
    parts: Callable[[], Sequence[ClaimNumber]]
    unit: str = ""
    command: str = HERE

    def row(self) -> dict[str, str]:
        """The claim with what was measured and the verdict."""
        parts = self.parts()
        right = sum(part.holds for part in parts)
        verdict = "true" if right == len(parts) else "partly" if right else "false"
        shown = ", ".join(f"{part.measured:,.{part.digits}f}" for part in parts)
        return {
            "source": self.source,
            "claim": self.says,
            "measured": f"{shown} {self.unit}".rstrip(),
            "verdict": verdict,
            "command": f"`{self.command}`",
        }
