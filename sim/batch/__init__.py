"""The batch simulator: a netlist as C++ in which every signal is a vector over many copies."""
