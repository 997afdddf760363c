"""FP32 arithmetic: addition, conversion, division, and the accumulator."""
