import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from axs6.sim.torch import backends, convert, matmul, profile
from axs6.sim.torch.backends import Result


def model() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.Flatten(), nn.Linear(24, 5))


def test_counts() -> None:
    converted = convert(model(), block_size=16)
    x = torch.randn(2, 4, 4, 4)
    with profile() as report:
        converted(x)
        converted(x)
        matmul(torch.ones(2, 3, 8), torch.ones(2, 8, 7))
    conv, linear, product = report.rows
    # Two groups of 8 output pixels, 3 outputs and 18 taps, in blocks of 16 of 14 bytes.
    assert (conv.name, conv.calls, conv.macs) == ("0", 2, 2 * 2 * 8 * 3 * 18)
    assert conv.packed_bytes == 2 * 2 * (8 + 3) * 2 * 14
    assert conv.fp32_bytes == 2 * 2 * (8 + 3) * 18 * 4
    assert (linear.name, linear.macs) == ("2", 2 * 2 * 5 * 24)
    assert (product.name, product.macs, product.calls) == ("matmul", 2 * 3 * 7 * 8, 1)
    assert product.packed_bytes == 2 * (3 + 7) * 26
    assert conv.cycles is None
    assert conv.utilisation is None
    assert 20 < conv.qsnr < 45
    total = report.total
    assert total.macs == conv.macs + linear.macs + product.macs
    assert total.calls == 5


def test_nothing_is_measured_outside() -> None:
    converted = convert(model())
    with profile() as report:
        pass
    converted(torch.randn(2, 4, 4, 4))
    assert not report.rows
    assert str(report).splitlines()[-1].startswith("total")


def test_the_table_and_json() -> None:
    converted = convert(model())
    with profile(compare="golden") as report:
        converted(torch.randn(2, 4, 4, 4))
    header, conv, *_, total = str(report).splitlines()
    assert " ".join(header.split()) == (
        "place calls MACs cycles used packed bytes FP32 bytes QSNR dB bits unlike golden"
    )
    assert conv.split()[:5] == ["0", "1", "864", "-", "-"]
    assert conv.split()[-1] == total.split()[-1] == "0"
    content = json.loads(report.to_json())
    assert content["compare"] == "golden"
    assert [layer["name"] for layer in content["layers"]] == ["0", "2"]
    assert content["layers"][0]["bits_different"] == 0
    assert content["layers"][0]["qsnr_db"] == report.rows[0].qsnr
    assert content["total"]["macs"] == report.total.macs


def test_a_backend_that_differs_in_one_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(backends.Golden):
        def product(self, a: Any, b: Any) -> Result:
            values = super().product(a, b).values
            values.view(torch.int32)[0, 1, 2] ^= 1
            return Result(values)

    monkeypatch.setitem(backends.BACKENDS, "golden", Wrong)
    backends.backend_of.cache_clear()
    converted = convert(nn.Linear(24, 5))
    with profile(compare="golden") as report:
        converted(torch.randn(3, 24))
    backends.backend_of.cache_clear()
    assert report.rows[0].bits_different == 1
    assert report.total.bits_different == 1


def test_overflow_and_empty_products_have_no_qsnr() -> None:
    with profile(compare="golden") as report:
        matmul(torch.full((1, 4), 1e30), torch.full((4, 1), 1e30))
        matmul(torch.zeros(0, 4), torch.ones(4, 1), block_size=8)
        matmul(torch.zeros(2, 4), torch.ones(4, 1), block_size=16)
    assert [row.qsnr for row in report.rows] == [None] * 3
    assert [row.bits_different for row in report.rows] == [0] * 3
    assert "NaN" not in report.to_json()
    assert str(report).splitlines()[1].split()[-2] == "-"


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_plot(tmp_path: Path, suffix: str) -> None:
    converted = convert(model())
    with profile() as report:
        converted(torch.randn(2, 4, 4, 4))
    report.plot(tmp_path / f"report.{suffix}")
    assert (tmp_path / f"report.{suffix}").stat().st_size > 1000


def test_an_unknown_backend_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="compare must be one of emulated, rtl, golden, not 'x'"),
        profile(compare="x"),
    ):
        pass
