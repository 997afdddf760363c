"""Parts of units that are proved alone, by name, for `axs6 prove`."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any

from axs6.hw.registry import BUS_UNITS
from axs6.proof.cores import Statement
from axs6.proof.division import division
from axs6.proof.fp32 import addition, conversion, multiplication
from axs6.proof.items import item_of, names_of
from axs6.proof.prove import RANDOM_ITEMS, Claim, Outcome, UnitProof
from axs6.proof.quotient import quotient
from axs6.proof.steps import NotShownError
from axs6.proof.terms_align import alignment
from axs6.proof.terms_join import joined_sum
from axs6.proof.terms_multiply import terms
from axs6.proof.terms_round import rounded_sum
from axs6.proof.vector_buses import proof_of_bus

COMPONENTS: Mapping[str, Callable[..., Mapping[str, Statement]]] = {
    "fp32_add": addition,
    "fp32_convert": conversion,
    "fp32_divide": division,
    "fp32_multiply": multiplication,
    "fp32_quotient": quotient,
    "terms_align": alignment,
    "terms_join": joined_sum,
    "terms_multiply": terms,
    "terms_round": rounded_sum,
}
"""What gives the statements about a component, from a limit in seconds and its parameters."""


class ComponentProof:
    """Proves that a component is what its definition says.

    Args:
        name: of the component. parameters: of it; the others keep their defaults. seconds: limit of
        each question to a solver, and of Yosys.

    Raises:
        ValueError: there is no such parameter, or it is refused.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        make = COMPONENTS[name]
        known = [each for each in signature(make).parameters if each != "seconds"]
        if unknown := sorted(set(parameters) - set(known)):
            has = " and ".join(known) or "none"
            raise ValueError(f"{name} has no parameter {unknown[0]}; it has {has}")
        self._name = name
        self.statements = make(seconds, **parameters)

    unspecified = ""
    """Why it has no specification: every component has one, as some units do."""

    def specification(self) -> Iterator[Claim]:
        """Prove each statement.

        Raises:
            SynthesisError: pyosys is missing, fails, or takes too long.
        """
        for text, statement in self.statements.items():
            yield _claim(text, statement)

    def rtl(self) -> Iterator[Claim]:
        """Nothing: a component has no registers."""
        return iter(())

    def mapped(self, **options: Any) -> Iterator[Claim]:
        """Refuse, as netlists are of units.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{self._name} is a part of units, and netlists are proved of these")

    def netlist(self, name: str, verilog: str, liberty: str | None = None) -> Iterator[Claim]:
        """Refuse, as `mapped`."""
        return self.mapped()


def proof_of(
    name: str, parameters: Mapping[str, Any], seconds: float = 600
) -> UnitProof | ComponentProof:
    """The proof of a unit or a component; arguments and errors are those of the three."""
    if name in COMPONENTS:
        return ComponentProof(name, parameters, seconds)
    make = proof_of_bus(name) if name in BUS_UNITS else UnitProof
    return make(name, parameters, seconds)


def _claim(text: str, statement: Statement) -> Claim:
    """What is known of a statement; an input that refutes it has been run through the graph."""
    core = statement.core
    _ = core.graph  # made before the clock starts
    start = time.perf_counter()
    outcome, reason, payload = Outcome.PROVED, "proof", None
    try:
        statement.show()
    except NotShownError as error:
        reason = str(error)
        tried = _random_payloads(core.width) if error.payload is None else [error.payload]
        payload = statement.wrong(tried)
        outcome = Outcome.OPEN if payload is None else Outcome.REFUTED
    seconds = time.perf_counter() - start
    item = None if payload is None else item_of(names_of(payload), core.inputs)
    return Claim("RTL", text, outcome, reason, seconds, item)


def _random_payloads(width: int) -> list[int]:
    """Random inputs of `width` bits; some of their bytes are all zeros or all ones."""
    rng = random.Random(1)
    return [
        int.from_bytes(rng.choice((0, 255, x, x)) for x in rng.randbytes(-(-width // 8)))
        & (1 << width) - 1
        for _ in range(RANDOM_ITEMS)
    ]
