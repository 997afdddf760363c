"""What the units are: component, choices, expected outputs and stimulus of each."""
