"""What is known of a mutant that no item kills."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from axs6.hw.units.unit import Items
from axs6.proof.items import numbers_of


class Verdict(StrEnum):
    """What is known of a survivor.

    EQUAL: it is the unit for all inputs. DIFFERENT: items kill it. OPEN: the solver took too long,
    or the mutant differs in what registers take, and is not shown to be the same queue.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    OPEN = "open"


@dataclass(frozen=True)
class Decision:
    """A verdict, and with DIFFERENT the items that kill: one, or those of a vector."""

    verdict: Verdict
    item: Items | None = None

    @property
    def numbers(self) -> dict[str, Any] | None:
        """The items' fields as numbers and lists of them."""
        return self.item and numbers_of(self.item)


UNDECIDED = Decision(Verdict.OPEN)
"""Nothing is known."""
