"""Descriptions of the units: component, choices, expected outputs and stimulus of each."""
