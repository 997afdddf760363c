"""Cells too wide for a vector's element, as cells over limbs of 32 bits.

Works on the cells of Yosys JSON, before words are made: sums become chains of carries, comparisons
the sign of a difference, shifts a multiplexer for each bit of the amount, products sums of the
products of limbs. Bitwise cells and registers need nothing: they can be cut anywhere.
"""

from collections.abc import Mapping
from typing import Any

from axs6.sim.batch.builder import Bits, Builder, Cells

LIMB = 32
SUMS = {"$add", "$sub", "$neg"}
COMPARISONS = {"$lt", "$le", "$gt", "$ge", "$eq", "$ne"}
SHIFTS = {"$shl", "$shr", "$sshl", "$sshr", "$shiftx"}
HANDLED = SUMS | COMPARISONS | SHIFTS | {"$mul"}


def split_wide(module: Mapping[str, Any], widest: int) -> Cells:
    """The cells of a module, those of more than `widest` bits replaced.

    Shifts by signed amounts are left as they are.
    """
    return _Splitter(module, widest).cells()


class _Splitter:
    def __init__(self, module: Mapping[str, Any], widest: int) -> None:
        self._module = module
        self._widest = widest
        self._builder = Builder(module)

    def cells(self) -> Cells:
        """Narrow cells as they are, and what the wide ones become."""
        for name, cell in self._module["cells"].items():
            widths = [len(bits) for bits in cell["connections"].values()]
            amount = cell["type"] in SHIFTS and int(cell["parameters"]["B_SIGNED"], 2)
            if cell["type"] not in HANDLED or max(widths) <= self._widest or amount:
                self._builder.cells[name] = cell
            else:
                result = self._result(cell)
                output = cell["connections"]["Y"]
                padded = _extended(result, len(output), False)
                self._builder.drive("$or", output, A=padded, B=["0"] * len(output))
        return self._builder.cells

    def _result(self, cell: Mapping[str, Any]) -> Bits:
        kind, connections = cell["type"], cell["connections"]
        signed = all(
            int(cell["parameters"][f"{port}_SIGNED"], 2)
            for port in "AB"
            if port in connections and kind not in SHIFTS
        )
        a, b = connections["A"], connections.get("B", [])
        width = len(connections["Y"])
        if kind in SHIFTS:
            return self._shifted(kind, a, b, width, bool(int(cell["parameters"]["A_SIGNED"], 2)))
        if kind in COMPARISONS:
            wide = max(len(a), len(b)) + 1
            return self._compared(kind, _extended(a, wide, signed), _extended(b, wide, signed))
        a = _extended(a, width, signed)
        if kind == "$neg":
            return self._sum(["0"] * width, self._inverted(a), "1")
        b = _extended(b, width, signed)
        if kind == "$mul":
            return self._product(a, b)
        return self._sum(a, b, "0") if kind == "$add" else self._sum(a, self._inverted(b), "1")

    def _sum(self, a: Bits, b: Bits, carry: Any) -> Bits:
        result: Bits = []
        for low in range(0, len(a), LIMB):
            limbs = [bits[low : low + LIMB] for bits in (a, b)]
            size = len(limbs[0]) + 1
            partial = self._builder.cell("$add", size, A=limbs[0], B=limbs[1])
            *limb, carry = self._builder.cell("$add", size, A=partial, B=[carry])
            result += limb
        return result

    def _product(self, a: Bits, b: Bits) -> Bits:
        width = len(a)
        total: Bits = ["0"] * width
        for i in range(0, width, LIMB):
            for j in range(0, width - i, LIMB):
                operands = {"A": a[i : i + LIMB], "B": b[j : j + LIMB]}
                limbs = self._builder.cell("$mul", 2 * LIMB, **operands)
                placed = (["0"] * (i + j) + limbs + ["0"] * width)[:width]
                total = self._sum(total, placed, "0")
        return total

    def _compared(self, kind: str, a: Bits, b: Bits) -> Bits:
        if kind in ("$eq", "$ne"):
            differing = self._builder.cell("$xor", len(a), A=a, B=b)
            differs = self._builder.cell("$reduce_or", 1, A=differing)
            return differs if kind == "$ne" else self._inverted(differs)
        if kind in ("$gt", "$le"):
            a, b = b, a
        less = self._sum(a, self._inverted(b), "1")[-1:]
        return less if kind in ("$lt", "$gt") else self._inverted(less)

    def _shifted(self, kind: str, a: Bits, amount: Bits, width: int, signed: bool) -> Bits:
        left = kind in ("$shl", "$sshl")
        wide = width if left else max(width, len(a))
        value = _extended(a, wide, signed)
        fill = value[-1] if kind == "$sshr" and signed else "0"
        for place, bit in enumerate(amount):
            distance = min(1 << place, wide)
            if left:
                moved = (["0"] * distance + value)[:wide]
            else:
                moved = (value + [fill] * distance)[-wide:]
            value = self._builder.cell("$mux", wide, A=value, B=moved, S=[bit])
        return value[:width]

    def _inverted(self, a: Bits) -> Bits:
        return self._builder.cell("$not", len(a), A=a)


def _extended(bits: Bits, width: int, signed: bool) -> Bits:
    fill = bits[-1] if signed and bits else "0"
    return (bits + [fill] * width)[:width]
