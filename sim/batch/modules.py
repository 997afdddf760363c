"""The modules of a design that become functions: those that many lanes share."""

import re
from collections import Counter
from dataclasses import dataclass, replace

MODULE = re.compile(
    r"^((?:attribute [^\n]*\n)*)module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL
)
INSTANCE = re.compile(r"^(  cell )\\(\S+)( .*)$", re.MULTILINE)
CLOCKED = re.compile(r"^  cell \$(?:\w*dff\w*|mem\w*|\w*latch\w*) ", re.MULTILINE)
OPERATION = re.compile(r"^  cell \$|^ +(?:case|assign) ", re.MULTILINE)

LEAST_OPERATIONS = 12
"""Below this a call costs more than it saves."""


@dataclass(frozen=True)
class ModuleText:
    """A module: the attributes in front of it, its name, and its text."""

    attributes: str
    name: str
    body: str

    @property
    def instances(self) -> list[str]:
        """Names of the modules of its instances, one for each."""
        return [match[2] for match in INSTANCE.finditer(self.body)]

    @property
    def rtlil(self) -> str:
        """Its text in full."""
        return f"{self.attributes}module \\{self.name}\n{self.body}end\n"


def with_functions(rtlil: str, top: str) -> str:
    """A design with `keep_hierarchy` on the modules that are to become functions.

    They are the largest modules without registers that occur more than once.
    """
    found = {match[2]: ModuleText(*match.groups()) for match in MODULE.finditer(rtlil)}
    modules = _children_first(found, top)
    chosen = _functions(modules, top)
    return "".join(
        replace(module, attributes=f"attribute \\keep_hierarchy 1\n{module.attributes}").rtlil
        if module.name in chosen
        else module.rtlil
        for module in modules.values()
    )


def _children_first(modules: dict[str, ModuleText], top: str) -> dict[str, ModuleText]:
    """The modules from `top` down, each after those of its instances."""
    ordered: dict[str, ModuleText] = {}

    def visit(name: str) -> None:
        if name not in ordered:
            for each in modules[name].instances:
                visit(each)
            ordered[name] = modules[name]

    visit(top)
    return ordered


def _functions(modules: dict[str, ModuleText], top: str) -> set[str]:
    clocked: dict[str, bool] = {}
    operations: dict[str, int] = {}
    for name, module in modules.items():  # children come before their parents
        clocked[name] = bool(CLOCKED.search(module.body)) or any(
            clocked[each] for each in module.instances
        )
        operations[name] = len(OPERATION.findall(module.body)) + sum(
            operations[each] for each in module.instances
        )
    occurrences = Counter({top: 1})
    chosen = set()
    for name in reversed(modules):
        repeated = occurrences[name] > 1 and not clocked[name]
        if repeated and operations[name] >= LEAST_OPERATIONS:
            chosen.add(name)
        else:
            for each in modules[name].instances:
                occurrences[each] += occurrences[name]
    return chosen
