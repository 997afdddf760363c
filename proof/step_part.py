"""What statements about the steps of an accumulator share."""

from functools import cached_property

from axs6.hw.core.parameters import STRUCTURE
from axs6.proof.cores import Core
from axs6.proof.relations import Numbered, Numbers, conjunction, constant, place
from axs6.proof.rounding import PLACE
from axs6.proof.step_meaning import StepMeaning

SPECIAL = ("nan", "infinite", "negative")
"""Fields of what is no number."""


class TermPart:
    """Statements about some steps.

    Args:
        meaning: of their fields. core: the steps. seconds: limit of a question.
    """

    prefix = ""
    """Of the names of terms in the input."""

    def __init__(self, meaning: StepMeaning, core: Core, seconds: float = 600) -> None:
        self.meaning, self.core, self.seconds = meaning, core, seconds

    @cached_property
    def words(self) -> Numbered:
        """Numbers of the input and the output."""
        return Numbered(self.core)

    @property
    def count(self) -> int:
        """Terms that are aligned together."""
        return self.meaning.lanes // self.meaning.size // self.meaning.defined.groups

    def show_passed(self, *names: str) -> None:
        """Show that fields pass through."""
        words = self.words
        inputs = {x: f"{self.prefix}{x}" for x in words.outputs}
        words.show_passed({x: inputs[x] for x in words.outputs if x.rstrip("0123456789") in names})

    def limit(self, name: str) -> int:
        """The largest distance, which stands for all above it."""
        words = self.words
        return (1 << words.outputs[name].width) - 1 if name in words.outputs else 0


def own_of(meaning: StepMeaning, total: int) -> tuple[int, int, int]:
    """The exponent field of a total, its significand, and the code of its exponent."""
    e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
    field, fraction = total >> f & (1 << e) - 1, total & (1 << f) - 1
    return field, fraction | bool(field) << f, max(field, 1) + meaning.own_code


def multiple(meaning: StepMeaning, total: int) -> bool:
    """Whether a total is a multiple of the last bit that any step keeps."""
    _, significand, own = own_of(meaning, total)
    low = meaning.least_unit - (own + meaning.base - meaning.output.fraction_bits)
    return low <= 0 or significand % (1 << low) == 0


def is_multiple(meaning: StepMeaning, name: str) -> str:
    """Definition of `multiple` in SMT-LIB."""
    e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
    width = e + f + 1
    low = meaning.least_unit - meaning.base + f - meaning.own_code
    return f"""
(define-fun multiple ((x {place(width)})) Bool
  (let ((field ((_ extract {e + f - 1} {f}) x)))
  (let ((low (bvsub {constant(low)} (ite (= field {constant(0, e)}) {constant(1)}
          ((_ zero_extend {PLACE - e}) field))))
        (own (concat (ite (= field {constant(0, e)}) #b0 #b1) ((_ extract {f - 1} 0) x))))
    (or (bvsle low {constant(0)}) {_multiples(f)}))))
"""


def _multiples(f: int) -> str:
    """That the lowest `low` of the bits of a significand are 0."""
    zeros = [
        f"(or (bvsle low {constant(k)}) (= ((_ extract {k} {k}) own) #b0))" for k in range(f + 1)
    ]
    return conjunction(*zeros)


def inverted(meaning: StepMeaning) -> bool:
    """Whether an aligned number lacks a 1 where it is negative."""
    return meaning.toward_zero and meaning.view == STRUCTURE


def signed(number: int, width: int) -> int:
    """A number in two's complement."""
    return number - (number >> width - 1 << width)


def aligned_number(number: int, width: int, lacking: bool) -> int:
    """What an aligned number is worth."""
    return signed(number, width) + (lacking and number >> width - 1)


def kept(given: Numbers, found: Numbers, prefix: str, *names: str) -> bool:
    """Whether numbers pass through."""
    return all(
        found[x] == given.get(f"{prefix}{x}", 0) for x in found if x.rstrip("0123456789") in names
    )
