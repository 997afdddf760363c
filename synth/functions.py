"""Functions of library cells, as Liberty writes them, and their truth tables."""

import re
from collections.abc import Sequence

_TOKEN = re.compile(r"\s*([A-Za-z_][\w\[\]]*|[01!'^&*|+()])")


def truth_table(function: str, inputs: Sequence[str]) -> int | None:
    """Return the truth table of a function: bit k is its value where input i has bit i of k.

    Operators are `!` and the trailing `'`, then `^`, then `&`, `*` and juxtaposition, then `|` and
    `+`. None stands for a function that is not of these inputs alone, such as a register's state.
    """
    rows = 1 << len(inputs)
    every = (1 << rows) - 1
    values = {"0": 0, "1": every}
    for i, name in enumerate(inputs):
        values[name] = sum(1 << row for row in range(rows) if row >> i & 1)
    tokens = _TOKEN.findall(function)
    if not tokens or re.sub(r"\s", "", function) != "".join(tokens):
        return None
    try:
        return _Expression([*tokens, ""], values, every).whole()
    except (KeyError, IndexError):
        return None


class _Expression:
    """Recursive descent over the tokens, with truth tables for values."""

    def __init__(self, tokens: list[str], values: dict[str, int], every: int) -> None:
        self._tokens, self._values, self._every = tokens, values, every
        self._at = 0

    def whole(self) -> int:
        value = self._sum()
        if self._tokens[self._at]:
            raise KeyError(self._tokens[self._at])
        return value

    def _next(self, *wanted: str) -> bool:
        found = self._tokens[self._at] in wanted
        self._at += found
        return found

    def _sum(self) -> int:
        value = self._product()
        while self._next("|", "+"):
            value |= self._product()
        return value

    def _product(self) -> int:
        value = self._parity()
        while self._next("&", "*") or self._tokens[self._at] not in ("", ")", "|", "+"):
            value &= self._parity()
        return value

    def _parity(self) -> int:
        value = self._factor()
        while self._next("^"):
            value ^= self._factor()
        return value

    def _factor(self) -> int:
        if self._next("!"):
            return self._every & ~self._factor()
        if self._next("("):
            value = self._sum()
            if not self._next(")"):
                raise KeyError(self._tokens[self._at])
        else:
            value = self._values[self._tokens[self._at]]
            self._at += 1
        while self._next("'"):
            value = self._every & ~value
        return value
