"""The mutation score of a unit: how many faults its regression's items find."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from axs6.golden.arguments import check_integer
from axs6.golden.formats import BlockFormat, Scale
from axs6.hw.core.layouts import Field, outer_names, scale_names
from axs6.hw.registry import find_with_streams
from axs6.hw.units.unit import Items
from axs6.proof.aig import NEXT, Graph
from axs6.proof.cycles import killed_in_cycles
from axs6.proof.items import one_item_each
from axs6.proof.mutants import MOST, MutantModel, Mutants, Mutation, mutants
from axs6.proof.prove import UnitProof
from axs6.proof.steps import Proof
from axs6.proof.survivors import Judge
from axs6.proof.verdicts import UNDECIDED, Decision, Verdict
from axs6.sim.compiled import Stall
from axs6.sim.tools import ToolError
from axs6.synth.process import Limit

STALLED = 1000
"""Random items that come with stalls."""

LONG = 1 << 17
"""Random items of a unit that remembers, so that it comes to rare states."""

IN_CYCLES = 64
"""Random items that come to a receiver that waits for `valid`, and with a reset in flight."""

FOLLOWING = 32
"""How often an item runs that is to kill."""

STALL = Stall(0.4, 0.4, seed=1)

SOLVER_SECONDS = 10.0
"""For each question about a survivor."""

SECONDS = 300.0
"""For all survivors."""


@dataclass(frozen=True)
class Survivor:
    """A mutant that no item killed, and what the solver says of it."""

    mutation: Mutation
    decision: Decision


@dataclass(frozen=True)
class MutationScore:
    """Mutants of a unit and what became of them.

    Args:
        unit: name. settings: all parameters. seed: of mutants and items. items: how many random
        items ran. killed: number of mutants that items killed. survivors: the others. over: whether
        the time was over before all of them were decided.
    """

    unit: str
    settings: Mapping[str, Any]
    seed: int
    items: int
    killed: int
    survivors: tuple[Survivor, ...]
    over: bool = False

    def having(self, verdict: Verdict) -> list[Survivor]:
        """The survivors of which the solver said this."""
        return [each for each in self.survivors if each.decision.verdict is verdict]

    @property
    def total(self) -> int:
        """Number of mutants."""
        return self.killed + len(self.survivors)

    @property
    def score(self) -> float:
        """Share of the killed among mutants that are not equal to the unit, open ones included."""
        counted = self.total - len(self.having(Verdict.EQUAL))
        return self.killed / counted if counted else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "unit": self.unit,
            "parameters": dict(self.settings),
            "seed": self.seed,
            "items": self.items,
            "killed": self.killed,
            "score": self.score,
            "over": self.over,
            "survivors": [
                {
                    **vars(each.mutation),
                    "verdict": str(each.decision.verdict),
                    "item": each.decision.numbers,
                }
                for each in self.survivors
            ],
        }


def mutation_score(
    unit: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    count: int = MOST,
    items: int = 10_000,
    seed: int = 1,
    seconds: float = SECONDS,
) -> MutationScore:
    """Run corner cases and random items of a unit through its mutants, and decide the survivors.

    A mutant is killed by other outputs, by none or too many, and without stalls by another number
    of cycles. Every item that the solver finds is run too, and must kill.

    Args:
        unit: name of a unit with streams `i` and `o`. parameters: of it; the others keep their
        defaults. count: number of mutants, 1 to 511. items: random items; some more come with
        stalls. seed: of mutants and items. seconds: limit for all survivors; what is left then is
        open.

    Raises:
        ValueError: an argument is refused.
        SynthesisError: pyosys is missing, fails, or takes too long.
        ToolError: the unit itself differs, or the simulator cannot be built.
        ImportError: the solver is missing.
    """
    check_integer("count", count, 1, MOST)
    check_integer("items", items, 1)
    check_integer("seed", seed, 0)
    made = mutants(unit, parameters or {}, count, seed)
    entry, settings = find_with_streams(unit), made.settings
    model, rng = MutantModel(made), np.random.default_rng(seed)
    dead = model.killed(entry.corners(settings))
    dead |= model.killed(entry.random(settings, rng, items))
    if entry.remembers:
        dead |= model.killed(entry.random(settings, rng, LONG))
    latency = entry.build(**settings).latency
    registers = any(name.startswith(NEXT) for name in made.graph.outputs)
    if registers:
        dead |= model.killed(entry.random(settings, rng, STALLED), STALL)
        few = entry.random(settings, rng, IN_CYCLES)
        dead |= killed_in_cycles(made, few, latency, seed)
    scales = _scales(entry.formats(settings), made.inputs)
    proof = None if registers else _proof(made)
    queue = latency if registers and _is_queue(made) else None
    judge = Judge(
        made.graph, made.inputs, made.source.outputs, scales, queue, proof, SOLVER_SECONDS
    )
    limit, alive = Limit(seconds), [each for each in made.mutations if not dead[each.number]]
    decisions = dict.fromkeys(alive, UNDECIDED)
    for decide in (judge.decide_quickly, judge.decide_soon, judge.decide):
        for each in alive:
            if decisions[each].verdict is Verdict.OPEN and limit.left:
                decisions[each] = decide(each.number)
    for each, decision in decisions.items():
        if decision.item is not None:
            _check_kills(model, each, decision.item)
    survivors = [Survivor(each, decision) for each, decision in decisions.items()]
    killed = len(made.mutations) - len(survivors)
    over = not limit.left
    return MutationScore(unit, settings, seed, items, killed, tuple(survivors), over)


def _is_queue(made: Mutants) -> bool:
    """Whether a unit is a queue of items, or of vectors that do not take turns."""
    entry = find_with_streams(made.unit)
    return not entry.remembers and made.settings.get("interleave", 1) == 1


def _proof(made: Mutants) -> Callable[[Graph], Proof] | None:
    """Gives the proof of a graph of a unit without registers, if there is one."""
    if not one_item_each(find_with_streams(made.unit), made.inputs):
        return None
    unit = UnitProof(made.unit, made.settings, SOLVER_SECONDS)
    return None if unit.unspecified else unit.held


def _scales(formats: Sequence[BlockFormat], inputs: Iterable[Field]) -> dict[str, Scale]:
    """The scales of fields that are codes of one; those of the right operand begin with "b."."""
    found = {}
    for field in inputs:
        side, _, name = field.name.rpartition(".")
        fmt = formats[-1 if side == "b" else 0]
        names = [*outer_names(fmt), *scale_names(fmt)]
        if name in names:
            found[field.name] = fmt.levels[::-1][names.index(name)].scale
    return found


def _check_kills(model: MutantModel, mutation: Mutation, item: Items) -> None:
    """Run an item that the solver found, or a vector.

    The selector comes with items, so more of them have to follow until the output is there.
    """
    often = {name: np.concatenate([array] * FOLLOWING) for name, array in item.items()}
    if not model.killed(often)[mutation.number]:
        raise ToolError(f"an item that was to kill the mutant {mutation} does not: {item}")
