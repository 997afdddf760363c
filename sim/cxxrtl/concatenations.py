"""Concatenations in the C++ that Yosys writes, made quick to compile.

Yosys writes `a.concat(b).concat(c)...`. Each call makes a type that holds the one before, over
which compilers take quadratic time; as a balanced tree the same concatenation takes little. A bit
that is repeated is written as often as it occurs, with all that it is computed from; CXXRTL's
`repeat` computes it once.
"""

import re

SHORT = 8
"""Concatenations of fewer operands stay as they are."""

CALL = ".concat("

BIT = re.compile(r"\w+<1>\(")
"""How an operand begins that computes a single bit."""


def balanced(source: str) -> str:
    """The same C++ with its long concatenations as trees and bits repeated by `repeat`."""
    return "\n".join(
        _statement(line) if line.count(CALL) >= SHORT else line for line in source.split("\n")
    )


def _statement(line: str) -> str:
    target, assigned, value = line.partition(" = ")
    if not assigned or line.lstrip().startswith("//"):
        return line
    operands, rest = _chain(_repeated(value))
    return f"{target} = {_tree(operands)}{rest}"


def _repeated(value: str) -> str:
    """The same expression, with successive calls of `concat` on one computed bit as one."""
    done, place = [], 0
    while (at := value.find(CALL, place)) >= 0:
        end = _closing(value, at + len(CALL))
        operand = value[at + len(CALL) : end]
        call, count = value[at : end + 1], 1
        bit = BIT.match(operand)
        if bit and _closing(operand, bit.end()) == len(operand) - 1:
            while value.startswith(call, at + count * len(call)):
                count += 1
        done += [value[place:at], CALL, _repeated(operand)]
        done.append(f".repeat<{count}>())" if count > 1 else ")")
        place = at + count * len(call)
    return "".join([*done, value[place:]])


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
    """Position of the first call of `concat` outside all brackets, or the end."""
    place = 0
    while place < len(value) and not value.startswith(CALL, place):
        place = _closing(value, place + 1) + 1 if value[place] == "(" else place + 1
    return place


def _closing(value: str, start: int) -> int:
    """Position at which the bracket that was opened just before `start` closes."""
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
