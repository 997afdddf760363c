"""From the modules of a design to the parts of a report."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A synthesised module: its own cells by type, and the modules of its instances by name."""

    cells: Mapping[str, int]
    instances: Mapping[str, str]


@dataclass(frozen=True)
class InstanceGroup:
    """Equal instances below one parent: their path, module and number in the whole design."""

    path: str
    module: str
    instances: int


def all_cells(modules: Mapping[str, Module], name: str) -> Counter[str]:
    """Count the cells of a module and of everything below it."""
    cells = Counter(modules[name].cells)
    for module, instances in Counter(modules[name].instances.values()).items():
        for cell, count in all_cells(modules, module).items():
            cells[cell] += instances * count
    return cells


def groups(modules: Mapping[str, Module], top: str) -> Iterator[InstanceGroup]:
    """Yield the groups of instances below `top`, parents before children, each level by name."""
    yield from _below(modules, InstanceGroup("", top, 1))


def _below(modules: Mapping[str, Module], parent: InstanceGroup) -> Iterator[InstanceGroup]:
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, module in modules[parent.module].instances.items():
        alike[re.sub(r"\d+", "*", name), module].append(name)
    children = [
        InstanceGroup(
            f"{parent.path}/{pattern(names)}".lstrip("/"), module, parent.instances * len(names)
        )
        for (_, module), names in alike.items()
    ]
    for child in sorted(children, key=lambda child: _natural(child.path)):
        yield child
        yield from _below(modules, child)


def pattern(names: Sequence[str]) -> str:
    """Write names that differ only in their numbers as one: `lane[0-3,7]`, `cell[0-1]_[0-3]`."""
    words = re.split(r"\d+", names[0])
    numbers = zip(*(map(int, re.findall(r"\d+", name)) for name in names), strict=True)
    return "".join(
        word + number
        for word, number in zip(words, [*(_ranges(set(n)) for n in numbers), ""], strict=True)
    )


def _ranges(numbers: set[int]) -> str:
    """Write numbers as a list of ranges in brackets, and a single one plainly."""
    if len(numbers) == 1:
        return str(numbers.pop())
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    return f"[{','.join(texts)}]"


def _natural(path: str) -> list[tuple[int, str]]:
    """Return a sorting key that puts lane2 before lane10."""
    return [
        (int(text), "") if text.isdigit() else (-1, text)
        for text in re.split(r"(\d+)", path.replace("[", ""))
    ]
