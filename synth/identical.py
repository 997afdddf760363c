"""Finding modules that differ only in name, so that one is measured for all of them.

Amaranth writes a module for each instance; 32 equal lanes arrive as 32 modules.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from axs6.synth.canonical import Child, Form, canonical_form


def representatives(modules: Mapping[str, Any], top: str) -> dict[str, Child]:
    """Map every module below `top` that equals another one to the first of them.

    Modules equal each other if they are isomorphic: they differ in the names and the order of the
    nets, cells and ports with generated names in them, and in nothing else. Instances keep their
    names, which reports show. Modules that are joined are equal; in rare cases (see
    `axs6.synth.canonical.canonical_form`) equal modules stay apart.

    Args:
        modules: those of a Yosys JSON netlist, without processes.
        top: the name of the top module.

    Returns:
        For each module that is not the first of its kind the first one, with the module's bits that
        belong at the first one's ports.
    """
    first: dict[str, list[tuple[str, Form]]] = defaultdict(list)
    chosen: dict[str, Child] = {}

    def visit(name: str) -> Child | None:
        if name not in modules or "blackbox" in modules[name]["attributes"]:
            return None
        if name not in chosen:
            form = canonical_form(modules[name], visit)
            found = (each for each in first[form.text] if each[1].stands_for(form))
            equal, theirs = next(found, (name, form))
            if equal == name:
                first[form.text].append((name, form))
            chosen[name] = form.child(equal, theirs)
        return chosen[name]

    visit(top)
    return {name: equal for name, equal in chosen.items() if name != equal.module}
