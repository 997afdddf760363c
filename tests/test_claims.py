"""The verdicts of docs/claims.md, and some of the measurements behind them."""

from fractions import Fraction

import measures
import numpy as np
import pytest
from claim import Claim, ClaimNumber, about, between, exactly


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([exactly(6.3125, 6.31, 2)], "true"),
        ([exactly(6.3125, 6.25, 2)], "false"),
        ([about(15.1, 16), about(14.3, 16)], "partly"),
        ([about(-0.5, -0.52), between(0, 0, np.inf)], "true"),
        ([about(1.1001, 1), between(-1e-9, 0, 1)], "false"),
    ],
)
def test_a_verdict_follows_from_the_numbers(parts: list[ClaimNumber], verdict: str) -> None:
    assert Claim("a page", "a claim", lambda: parts).row()["verdict"] == verdict


def test_gaps_are_those_of_the_codes() -> None:
    assert measures.gaps("mxfp4") == [Fraction(n, 12) for n in (1, 1, 1, 1, 2, 2, 4)]
    assert measures.gaps("axs6") == [Fraction(1, 31)] * 31
    assert len(measures.gaps("mxint8")) == 127


def test_ranges_of_elements() -> None:
    assert measures.element_range("mxfp8_e4m3") == (448, -6, -9)
    assert measures.element_range("mxfp8_e5m2") == (57344, -14, -16)
    assert [measures.nan_codes(f"mxfp8_{name}") for name in ("e4m3", "e5m2")] == [2, 6]


def test_mx9_is_what_quark_says() -> None:
    assert measures.differs_from_quark() == 0


def test_another_rule_of_shifts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = measures.axs6.encode
    monkeypatch.setattr(measures.axs6, "encode", lambda x, _: encode(x, "msfp16"))
    assert measures.differs_from_quark() > 10_000
