"""Long concatenations in CXXRTL's C++ as trees: the same operands in the same order."""

import pytest

from axs6.sim.cxxrtl.concatenations import SHORT, balanced


class Bits:
    """Operands that have been joined, and how deep the calls were nested."""

    def __init__(self, names: tuple[str, ...], depth: int = 0) -> None:
        self.names = names
        self.depth = depth

    def concat(self, low: "Bits") -> "Bits":
        return Bits(self.names + low.names, max(self.depth, low.depth) + 1)

    def slice(self, high: int, low: int) -> "Bits":
        return Bits((*self.names, f"{high}:{low}"), self.depth)


def chain(operands: list[str]) -> str:
    return "x(0)" + "".join(f".concat({operand})" for operand in operands)


def evaluated(line: str) -> Bits:
    target, _, value = line.partition(" = ")
    assert target == "\tp_y"
    result = eval(value.removesuffix(";"), {"x": lambda n: Bits((f"x{n}",))})
    assert isinstance(result, Bits)
    return result


@pytest.mark.parametrize("count", [SHORT - 1, SHORT, 50, 300])
@pytest.mark.parametrize("after", ["", ".slice(7, 0)"])
def test_the_operands_keep_their_order(count: int, after: str) -> None:
    operands = [f"x({n}).slice({n}, {n})" if n % 3 else f"x({n})" for n in range(1, count + 1)]
    operands[2] = chain(["x(100)", "x(101)"])
    line = f"\tp_y = {chain(operands)}{after};"
    before, now = evaluated(line), evaluated(balanced(line))
    assert now.names == before.names
    assert before.depth == count
    assert now.depth <= (count if count < SHORT else count.bit_length() + 2)


@pytest.mark.parametrize("line", ["// a.concat(b)" * 20, "return" + ".concat(b)" * 20, "x = y;"])
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert balanced(f"a\n{line}\n") == f"a\n{line}\n"


BIT, WIDE = "and_uu<1>(p_a, p_b)", "and_uu<2>(p_a, p_b)"


def joined(*operands: str) -> str:
    return "p_x" + "".join(f".concat({operand})" for operand in operands)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (joined(*[BIT] * 8), joined(f"{BIT}.repeat<8>()")),
        (joined(*[BIT] * 7, "p_c"), f"p_x.concat({BIT}.repeat<7>().concat(p_c))"),
        (
            f"or_uu<3>({joined(*[BIT] * 3)}, {joined(*[BIT] * 5)})",
            f"or_uu<3>({joined(f'{BIT}.repeat<3>()')}, {joined(f'{BIT}.repeat<5>()')})",
        ),
        (
            joined(*[f"not_u<1>({joined(BIT, BIT)})"] * 8),
            joined(f"not_u<1>({joined(f'{BIT}.repeat<2>()')}).repeat<8>()"),
        ),
    ],
)
def test_a_computed_bit_is_repeated(before: str, after: str) -> None:
    assert balanced(f"\tp_y = {before};") == f"\tp_y = {after};"


@pytest.mark.parametrize("operand", ["p_a", "p_a.slice<1,0>()", WIDE, f"{BIT}.concat({BIT})"])
def test_other_operands_are_not(operand: str) -> None:
    assert "repeat" not in balanced(f"\tp_y = {joined(*[operand] * 9)};")
