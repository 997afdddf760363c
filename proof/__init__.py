"""What shows that the hardware is right beyond simulation: mutants of units, and proofs about their
gates."""
