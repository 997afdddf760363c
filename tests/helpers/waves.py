"""Values of a VCD file at moments of time, bit by bit."""

from pathlib import Path

from vcd.reader import ScalarChange, TokenKind, VarDecl, VectorChange, tokenize

Values = dict[str, int | None]
"""The value of each bit by its path, an element of a vector as `NAME[3]`; None where it is X."""


def samples(path: Path, times: range, top: str) -> list[Values]:
    """The values within an instance just before each of some times.

    Args:
        path: of a VCD file.
        times: in its unit of time, rising.
        top: the instance, as `bench.dut`, which names leave out.
    """
    values: Values = {}
    found: list[Values] = []
    variables: dict[str, list[tuple[str, int]]] = {}
    scope: list[str] = []
    with path.open("rb") as file:
        for token in tokenize(file):
            data = token.data
            if token.kind is TokenKind.SCOPE:
                scope.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scope.pop()
            elif isinstance(data, VarDecl):
                name = ".".join([*scope, data.reference]).removeprefix(f"{top}.")
                variables.setdefault(data.id_code, []).append((name, data.size))
            elif token.kind is TokenKind.CHANGE_TIME:
                found += [dict(values) for time in times[len(found) :] if time <= token.time_change]
            elif isinstance(data, ScalarChange | VectorChange):
                for name, size in variables[data.id_code]:
                    values |= _bits(name, size, data.value)
    return [*found, *(dict(values) for _ in times[len(found) :])]


def _bits(name: str, size: int, value: int | str) -> Values:
    digits = f"{value:0{size}b}" if isinstance(value, int) else value.lower().zfill(size)
    bits = [int(digit) if digit in "01" else None for digit in reversed(digits)]
    return {name if size == 1 else f"{name}[{k}]": bit for k, bit in enumerate(bits)}
