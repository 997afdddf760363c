"""Elements of the named formats beside those of the exact model, code by code."""

from fractions import Fraction

import pytest

from axs6.golden.check.exact.floats import Special
from axs6.golden.check.exact.formats import CATALOG as EXACT
from axs6.golden.formats import CATALOG, Selected

PLAIN = [name for name, fmt in CATALOG.items() if not isinstance(fmt.element, Selected)]


@pytest.mark.parametrize("name", PLAIN)
def test_elements_have_the_values_of_the_exact_model(name: str) -> None:
    element, values = CATALOG[name].element, EXACT[name].element.values
    assert len(values) == 1 << element.width
    for code, public in enumerate(values):
        integer = element.integer(code)
        found = integer * element.unit if isinstance(integer, int) else None
        zero = public is Special.NEGATIVE_ZERO
        assert found == (0 if zero else public if isinstance(public, Fraction) else None)
