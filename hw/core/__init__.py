"""Common parts of all units: steps and pipelines, layouts, trees, RTLIL."""
