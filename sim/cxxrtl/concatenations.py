"""Concatenations in the C++ that Yosys writes, made quick to compile.

Yosys writes `a.concat(b).concat(c)...`. Each call makes a type that holds the one before, over
which compilers take quadratic time; as a balanced tree the same concatenation takes little.
"""

SHORT = 8
"""Concatenations of fewer operands stay as they are."""

CALL = ".concat("


def balanced(source: str) -> str:
    """The same C++ with its long concatenations as trees."""
    return "\n".join(
        _statement(line) if line.count(CALL) >= SHORT else line for line in source.split("\n")
    )


def _statement(line: str) -> str:
    target, assigned, value = line.partition(" = ")
    if not assigned or line.lstrip().startswith("//"):
        return line
    operands, rest = _chain(value)
    return f"{target} = {_tree(operands)}{rest}"


def _chain(value: str) -> tuple[list[str], str]:
    """Operands of the outermost chain that starts an expression, and what follows it."""
    end = _first_call(value)
    operands = [value[:end]]
    while value.startswith(CALL, end):
        start = end + len(CALL)
        end = _closing(value, start)
        operands.append(value[start:end])
        end += 1
    return operands, value[end:]


def _first_call(value: str) -> int:
    """Where `concat` is first called outside all brackets, or the end."""
    place = 0
    while place < len(value) and not value.startswith(CALL, place):
        place = _closing(value, place + 1) + 1 if value[place] == "(" else place + 1
    return place


def _closing(value: str, start: int) -> int:
    """Where the bracket closes that was opened just before `start`."""
    depth = 1
    for place in range(start, len(value)):
        depth += {"(": 1, ")": -1}.get(value[place], 0)
        if not depth:
            return place
    return len(value)


def _tree(operands: list[str]) -> str:
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    return f"{_tree(operands[:half])}.concat({_tree(operands[half:])})"
