"""What every unit is built of: steps and pipelines, layouts, trees, RTLIL."""
