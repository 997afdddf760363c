"""What units have to give, by the formats' definitions, for `axs6.proof.prove`."""

from collections.abc import Mapping

from axs6.proof.block_dot import block_dot_proof
from axs6.proof.decoder import decoder_proof
from axs6.proof.dot import dot_proof
from axs6.proof.encoder import encoder_proof
from axs6.proof.expander import expander_proof
from axs6.proof.steps import Specification

SPECIFICATIONS: Mapping[str, Specification] = {
    "block_dot": block_dot_proof,
    "decoder": decoder_proof,
    "dot": dot_proof,
    "encoder": encoder_proof,
    "expander": expander_proof,
}
"""By name of the unit."""
