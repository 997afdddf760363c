"""The description of the machine that a benchmark runs on."""

import platform

NUMBERS = {"family": "cpu family", "model": "model"}
"""Numbers that tell processors apart, and Linux's names for them: clouds call all of them alike."""


def processor() -> str:
    """The processor's name, family and model, where the system reports them."""
    try:
        with open("/proc/cpuinfo") as file:
            first, _, _ = file.read().partition("\n\n")
    except OSError:
        first = ""
    pairs = (line.partition(":") for line in first.splitlines())
    told = {key.strip(): value.strip() for key, _, value in pairs}
    name = told.get("model name", platform.machine())
    numbers = [f"{ours} {told[theirs]}" for ours, theirs in NUMBERS.items() if theirs in told]
    return f"{name} ({', '.join(numbers)})" if numbers else name
