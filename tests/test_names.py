"""A name of a class has one meaning."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("axs6", "benchmarks", "bridge", "files", "fuzz", "golden", "hw", "sim", "studies", "synth")

SAME = {
    **dict.fromkeys(
        ("Accumulator", "Exponent", "Integer", "Operand", "Real", "Rounding", "Shift"),
        "the exact model restates it from its definition",
    ),
    "ComponentModel": "a compiled component, in each of two simulators",
    "Lfsr": "the golden model, the unit, and torch's source of words",
    "MatMul": "the module of a model, and the layer that `convert` puts in its place",
}
"""Names of several classes with one meaning, and why."""


def repeated(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Names of several classes at the top of modules, and the files that have them."""
    found = defaultdict(list)
    for path, text in texts.items():
        for name in re.findall(r"^class (\w+)", text, re.M):
            found[name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def sources() -> Iterable[str]:
    """Python files of the rooms in git."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return (name for name in listed.stdout.split() if (ROOT / name).exists())


def test_classes_of_one_name_have_one_meaning() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in sources()}
    assert len(texts) > 400
    found = repeated(texts)
    assert {name: found[name] for name in found.keys() - SAME.keys()} == {}
    assert found.keys() == SAME.keys()


def test_a_second_class_of_a_name_is_found() -> None:
    one, other = "class Round:\n    pass\n", "class Round(int):\n    pass\n"
    assert repeated({"a.py": one, "b.py": other}) == {"Round": ["a.py", "b.py"]}
    assert not repeated({"a.py": one, "b.py": "def Round():\n    pass\n"})
