"""What shows that the hardware is right beyond simulation: mutants of units, and proofs about their
gates."""

COMMANDS = "commands.txt"
"""The file that `axs6.proof.worker` reads. It is here, so that the worker loads nothing else."""
