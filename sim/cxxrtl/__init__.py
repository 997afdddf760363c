"""The reference simulator: one copy of a design, through Yosys's CXXRTL."""
