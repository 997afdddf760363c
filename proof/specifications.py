"""What units have to give, by the formats' definitions, for `axs6.proof.prove`."""

from collections.abc import Callable, Mapping
from typing import Any

from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.proof.block_dot import block_dot_proof
from axs6.proof.decoder import decoder_proof
from axs6.proof.dot import dot_proof
from axs6.proof.dot_terms import term_dot_proof
from axs6.proof.encoder import encoder_proof
from axs6.proof.expander import expander_proof
from axs6.proof.steps import Proof, Specification, Subject


def _of_dot(settings: Mapping[str, Any]) -> Specification:
    """That of a dot product with an accumulator."""
    default = settings.get("accumulator", DEFAULT_ACCUMULATOR) == DEFAULT_ACCUMULATOR
    return dot_proof if default else term_dot_proof


def _dot(of: Subject) -> Proof:
    return _of_dot(of.settings)(of)


SPECIFICATIONS: Mapping[str, Specification] = {
    "block_dot": block_dot_proof,
    "decoder": decoder_proof,
    "dot": _dot,
    "encoder": encoder_proof,
    "expander": expander_proof,
}
"""By name of the unit."""

_CHOICES: Mapping[str, Callable[[Mapping[str, Any]], Specification]] = {"dot": _of_dot}


def specification_of(unit: str, settings: Mapping[str, Any]) -> Specification:
    """What holds a unit with some parameters to its definition, of those that are one."""
    choose = _CHOICES.get(unit)
    return choose(settings) if choose else SPECIFICATIONS[unit]
