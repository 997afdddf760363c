"""Finding modules that differ only in name, so that one is measured for all of them.

Amaranth writes a module for each instance; 32 equal lanes arrive as 32 modules.
"""

import json
from collections.abc import Mapping
from typing import Any


def representatives(modules: Mapping[str, Any], top: str) -> dict[str, str]:
    """Map every module below `top` that equals another one to the first of them.

    `modules` are those of a Yosys JSON netlist whose private names were enumerated, which makes
    equal modules equal text but for names with `$`. Modules that this misses stay apart; modules
    that it joins are equal.
    """
    first: dict[str, str] = {}
    chosen: dict[str, str] = {}

    def visit(name: str) -> str:
        if name not in chosen:
            text = json.dumps(_canonical(modules[name], cell_type), sort_keys=True)
            chosen[name] = first.setdefault(text, name)
        return chosen[name]

    def cell_type(name: str) -> str:
        return visit(name) if name in modules else name

    visit(top)
    return {name: equal for name, equal in chosen.items() if name != equal}


def _canonical(module: Any, cell_type: Any) -> list[Any]:
    """Return what makes up a module, without source locations and generated names."""
    cells = [
        [
            _name(name),
            cell_type(cell["type"]),
            cell["parameters"],
            _attributes(cell),
            cell["connections"],
        ]
        for name, cell in module["cells"].items()
    ]
    nets = sorted(
        json.dumps([_name(name), net["bits"], _attributes(net)], sort_keys=True)
        for name, net in module["netnames"].items()
    )
    return [module["ports"], cells, nets, module.get("memories", {})]


def _name(name: str) -> str:
    return "" if "$" in name else name


def _attributes(thing: Any) -> dict[str, str]:
    return {key: value for key, value in thing["attributes"].items() if key != "src"}
