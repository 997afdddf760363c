"""Equal modules of a design written once, and those marked that become functions.

Amaranth writes a module for each instance, in RTLIL: 32 equal lanes arrive as 32 modules that
differ in their names alone.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

MODULE = re.compile(
    r"^((?:attribute [^\n]*\n)*)module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL
)
INSTANCE = re.compile(r"^(  cell )\\(\S+)( .*)$", re.MULTILINE)
CONNECTION = re.compile(r"^(    connect )(\\\S+)( .*)$")
GENERATED = re.compile(r"\\port\$\d+\$\d+")
CLOCKED = re.compile(r"^  cell \$(?:\w*dff\w*|mem\w*|\w*latch\w*) ", re.MULTILINE)
OPERATION = re.compile(r"^  cell \$|^ +(?:case|assign) ", re.MULTILINE)

LEAST_OPERATIONS = 12
"""Below this a call costs more than it saves."""


@dataclass(frozen=True)
class Module:
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
    """A design whose equal modules are one, with `keep_hierarchy` on those to become functions.

    They are the largest modules without registers that occur more than once.
    """
    modules = _merged({match[2]: Module(*match.groups()) for match in MODULE.finditer(rtlil)}, top)
    chosen = _functions(modules, top)
    return "".join(
        replace(module, attributes=f"attribute \\keep_hierarchy 1\n{module.attributes}").rtlil
        if module.name in chosen
        else module.rtlil
        for module in modules.values()
    )


def _merged(modules: dict[str, Module], top: str) -> dict[str, Module]:
    """The modules below `top`, children first, with only the first of each set of equal ones."""
    first: dict[str, Module] = {}
    chosen: dict[str, tuple[str, dict[str, str]]] = {}

    def visit(name: str) -> tuple[str, dict[str, str]]:
        if name not in chosen:
            ports: dict[str, str] = {}
            body = _renamed(modules[name].body, visit, ports)
            equal = first.setdefault(body, replace(modules[name], body=body))
            chosen[name] = equal.name, ports
        return chosen[name]

    visit(top)
    return {module.name: module for module in first.values()}


def _renamed(
    body: str, visit: Callable[[str], tuple[str, dict[str, str]]], ports: dict[str, str]
) -> str:
    """A module's text with its instances and their generated port names as `visit` gives them.

    Amaranth numbers the ports that it adds through the whole design; here each module numbers its
    own, and `ports` gets the new names.
    """

    def own(match: re.Match[str]) -> str:
        return ports.setdefault(match[0], f"\\port${len(ports)}")

    inner: dict[str, str] | None = None
    lines = []
    for line in body.splitlines():
        if match := INSTANCE.match(line):
            name, inner = visit(match[2])
            line = f"{match[1]}\\{name}{match[3]}"
        elif line == "  end":
            inner = None
        elif inner is not None and (match := CONNECTION.match(line)):
            line = f"{match[1]}{inner.get(match[2], match[2])}{GENERATED.sub(own, match[3])}"
        else:
            line = GENERATED.sub(own, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _functions(modules: dict[str, Module], top: str) -> set[str]:
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
