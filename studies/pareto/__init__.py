"""The Pareto study: accuracy against area and memory of hundreds of block formats."""
