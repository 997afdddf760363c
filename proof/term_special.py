"""Whether the products of a step are NaN or infinite."""

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special
from axs6.proof.aig import FALSE
from axs6.proof.relations import Numbers
from axs6.proof.solver import never
from axs6.proof.step_part import SPECIAL
from axs6.proof.steps import NotShownError
from axs6.proof.term_places import SIDES, TermPlaces, is_infinite, is_minus, is_zero


class SpecialProducts(TermPlaces):
    """Statements about them."""

    def show_special(self) -> None:
        """Show what is special from tables of codes and scales."""
        graph = self.core.graph
        nan, plus, minus = [], [], []
        for lane in range(self.meaning.lanes):
            kinds = [self._kinds(side, lane) for side in range(2)]
            nan += [kind["nan"] for kind in kinds]
            for one, other in (kinds, kinds[::-1]):
                nan.append(graph.both(one["infinite"], other["zero"]))
            sign = graph.unlike(*(kind["minus"] for kind in kinds))
            infinite = graph.any([kind["infinite"] for kind in kinds])
            plus.append(graph.both(infinite, sign ^ 1))
            minus.append(graph.both(infinite, sign))
        either = [graph.any(plus), graph.any(minus)]
        is_nan = graph.any([*nan, graph.both(*either)])
        is_number = graph.any([is_nan, *either]) ^ 1
        found = {x: (*self.found(x), FALSE)[0] for x in SPECIAL}
        wrong = [
            graph.unlike(found["nan"], is_nan),
            graph.both(is_nan ^ 1, graph.unlike(found["infinite"], graph.any(either))),
            graph.both(
                graph.both(is_nan ^ 1, is_number ^ 1), graph.unlike(found["negative"], either[1])
            ),
        ]
        (all_wrong,) = graph.cofactor([graph.any(wrong)], self.signs)
        if not never(graph, all_wrong, self.seconds):
            raise NotShownError("what is special is not shown to be what the definition says")

    def _kinds(self, side: int, lane: int) -> dict[str, int]:
        """Whether a value is NaN, infinite, 0, or has a minus sign."""
        graph = self.core.graph
        values = self.meaning.sides[side].element.values
        bits = self.words.given(f"{SIDES[side]}.codes{lane}")
        infinite = graph.look_up(bits, [is_infinite(x) for x in values])
        nan = [graph.look_up(bits, [x is Special.NAN for x in values])]
        zero = [graph.look_up(bits, [is_zero(x) for x in values])]
        for level, name in self.scales(lane):
            if name.startswith(SIDES[side]):
                scale = self.words.given(name)
                table = [scale_value(code, level) for code in range(1 << len(scale))]
                nan.append(graph.look_up(scale, [x is Special.NAN for x in table]))
                zero.append(graph.look_up(scale, [is_zero(x) for x in table]))
        nan += [graph.both(infinite, each) for each in zero]
        minus = graph.look_up(bits, [is_minus(x) for x in values])
        return {
            "nan": graph.any(nan),
            "infinite": infinite,
            "zero": graph.any(zero),
            "minus": minus,
        }

    def is_special(self, given: Numbers, found: Numbers) -> bool:
        """Whether what is special is right."""
        nan, signs = False, set()
        scales = {x for lane in range(self.meaning.lanes) for x in self.scales(lane)}
        if any(
            isinstance(x, exact.Real) and x.signed and given[y] >> x.bits - 1 for x, y in scales
        ):
            return True
        for lane in range(self.meaning.lanes):
            values = []
            for side, definition in enumerate(self.meaning.sides):
                value = definition.element.values[given[f"{SIDES[side]}.codes{lane}"]]
                own = [x for x in self.scales(lane) if x[1].startswith(SIDES[side])]
                factors = [scale_value(given[name], level) for level, name in own]
                bad = is_infinite(value) and any(map(is_zero, factors))
                nan |= value is Special.NAN or Special.NAN in factors or bad
                zero = is_zero(value) or any(map(is_zero, factors))
                values.append((is_infinite(value), zero, is_minus(value)))
            (x, x_zero, x_minus), (y, y_zero, y_minus) = values
            nan |= (x and y_zero) or (y and x_zero)
            if x or y:
                signs.add(x_minus != y_minus)
        nan |= len(signs) == 2
        if nan or found.get("nan", 0):
            return bool(found.get("nan", 0)) == nan
        infinite = bool(found.get("infinite", 0))
        return infinite == bool(signs) and (not signs or bool(found["negative"]) in signs)
