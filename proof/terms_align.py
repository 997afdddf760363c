"""Terms of a step aligned to the largest exponent, cut, and added, for all inputs.

The sum S and the exponent T that a step gives are held to this definition: T is the largest of the
exponents of its terms that count, of the accumulator's if that is one of them, and of `least`; each
of these is cut to multiples of 2^(T - f), toward zero or toward minus infinity; and S * 2^(T - f)
is their sum. Where no term counts, and so the sum is the accumulator alone, T may be below `least`:
a total is a multiple of 2^(`least` - f), of which nothing is cut then.

Source: docs/format.md, "Other accumulators".
"""

from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Step
from axs6.hw.dot.align import AlignTerms, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.fused import fused_steps
from axs6.hw.dot.joined import JoinPlan, joining_steps
from axs6.hw.fp32.normalise import normalising_steps
from axs6.proof.cores import Core, Statement
from axs6.proof.relations import relation
from axs6.proof.step_meaning import StepMeaning
from axs6.proof.term_distances import JoinedTotal, TermDistances
from axs6.proof.term_sums import AddedTerms, CutTerms


def steps_of(meaning: StepMeaning) -> list[list[Step]]:
    """The generator's steps by the statement about them: distances, those with the accumulator,
    shifts, the sum, and its rounding. With a second alignment, those of a group of terms."""
    align, view = meaning.align, meaning.view
    if meaning.defined.total_fraction is not None:
        join = JoinPlan(align)
        rounds = joining_steps(join, skips=False)[3:]
        align = join.group
        first, shifts = distance_steps(align), AlignTerms(align, view)
        return [first, [], [shifts], sum_steps(align, view), rounds]
    if align.fused:
        loop = fused_steps(align, view)
        last = len(loop) - len(normalising_steps(align.wide))
        return [distance_steps(align), loop[:3], loop[3:4], loop[4:last], loop[last:]]
    shift: list[Step] = [AlignTerms(align, view)]
    rounds = normalising_steps(align.wide)
    return [distance_steps(align), [], shift, sum_steps(align, view), rounds]


def alignment(
    seconds: float,
    format: str = "fp8_e4m3",
    block: int | None = None,
    accumulator: str = "hopper",
    view: str = STRUCTURE,
) -> dict[str, Statement]:
    """Statements about the aligned sum of a step.

    Args:
        seconds: limit of each question. format, block, accumulator, view: as of a dot product.

    Raises:
        ValueError: as of `StepMeaning`.
    """
    meaning = StepMeaning(format, block, accumulator, view)
    first, joined, shift, added, _ = (Core(x, seconds) if x else None for x in steps_of(meaning))
    assert first is not None
    assert shift is not None
    assert added is not None
    found: dict[str, Statement] = {}
    claims = TermDistances(meaning, first, seconds)
    found["the largest exponent of a step is that of its terms that count, or the least"] = (
        relation(first, claims.show_largest, claims.is_largest)
    )
    found["each term has its distance to the largest exponent"] = relation(
        first, claims.show_distances, claims.are_distances
    )
    if joined is not None:
        both = JoinedTotal(meaning, joined, seconds)
        found["the accumulator and the terms have their distances to the larger exponent"] = (
            relation(joined, both.show, both.holds)
        )
        found["NaN and infinities are those of terms and accumulator by IEEE 754"] = relation(
            joined, both.show_special, both.is_special
        )
    cut = CutTerms(meaning, shift, seconds)
    toward = "zero" if meaning.toward_zero else "minus infinity"
    found[f"everything below {meaning.fraction} bits is dropped toward {toward}"] = relation(
        shift, cut.show, cut.holds
    )
    total = AddedTerms(meaning, added)
    found["the sum is that of all that is aligned"] = relation(added, total.show, total.holds)
    return found
