import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.torch import backends, convert, matmul, profile
from axs6.torch.backends import ProductBatch


def model() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.Flatten(), nn.Linear(24, 5))


def test_counts() -> None:
    converted = convert(model(), block=16)
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


class Mixed(nn.Module):
    """Products in AXS-6, and products that stay torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.cell = nn.GRUCell(4, 6)
        self.transposed = nn.ConvTranspose2d(4, 2, 3, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x) + torch.linalg.multi_dot([x, torch.ones(4, 5), torch.ones(5, 4)])
        y = y + (x.long() @ torch.ones(4, 4).long()).float()
        return self.cell(y) + self.transposed(x.T.view(1, 4, 3, 1)).sum()


@pytest.mark.parametrize("inference", [False, True])
def test_products_of_torch_are_listed_with_their_macs(inference: bool) -> None:
    exclude = ["0.cell", "0.transposed"]
    model = convert(nn.Sequential(Mixed()), unconverted="ignore", exclude=exclude)
    x = torch.randn(3, 4)
    with torch.inference_mode(inference), profile() as report:
        y = model(x)
        model(x)
        if not inference:
            y.sum().backward()
    assert [row.name for row in report.rows] == ["0.linear"]
    assert [(row.name, row.calls, row.macs) for row in report.unconverted] == [
        ("0.mm", 4, 2 * 2 * 3 * 4 * 5),
        ("0.cell.addmm", 4, 2 * 3 * 18 * (4 + 6)),
        # Each of 3 pixels in 4 channels has 9 taps of one output of its group.
        ("0.transposed.convolution", 2, 2 * 3 * 4 * 9),
    ]
    assert report.total.macs == report.rows[0].macs
    lines = [" ".join(line.split()) for line in str(report).splitlines()]
    assert lines[-4:-2] == ["not converted, by torch calls MACs", "0.mm 4 240"]
    assert json.loads(report.to_json())["unconverted"][0] == {
        "name": "0.mm",
        "calls": 4,
        "macs": 240,
    }


A, B = torch.ones(3, 4), torch.ones(2, 4, 5)
SEQUENCES = torch.ones(7, 3, 4)


@pytest.mark.parametrize(
    ("run", "macs"),
    [
        (lambda: A @ A[0], 12),
        (lambda: torch.addmv(A[:, 0], A, A[0]), 12),
        (lambda: A[0] @ A[1], 4),
        (lambda: torch.vdot(A[0], A[1]), 4),
        (lambda: torch.addbmm(torch.ones(3, 5), torch.ones(2, 3, 4), B), 120),
        (lambda: torch.conv_tbc(SEQUENCES, torch.ones(2, 4, 5), torch.ones(5), 1), 8 * 3 * 40),
        (lambda: nn.functional.bilinear(A, torch.ones(3, 5), B), 120),
        (lambda: torch.cdist(torch.ones(30, 4), torch.ones(40, 4)), 30 * 40 * 4),
        (lambda: nn.LSTM(4, 6, bidirectional=True)(SEQUENCES), 2 * 21 * 24 * 10),
        (lambda: nn.functional.scaled_dot_product_attention(B, B, B[..., :3]), 2 * 16 * 8),
        (lambda: nn.Conv3d(2, 3, 2)(torch.ones(2, 3, 3, 3)), 8 * 3 * 2 * 8),
        (lambda: A.cfloat() @ A.T.cfloat(), 36),
        (lambda: A.long() @ A.T.long(), 0),
        (lambda: A * A, 0),
    ],
)
def test_macs_of_torch(run: Callable[[], Any], macs: int) -> None:
    with profile() as report:
        run()
    assert sum(row.macs for row in report.unconverted) == macs


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_macs_of_fast_paths_are_those_of_their_parts() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True).eval()
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(2, 5, 8)
    for model in (layer, lambda x: attention(x, x, x)):
        counts = []
        for inference in (False, True):
            with torch.inference_mode(inference), profile() as report:
                model(x)
            counts.append((len(report.unconverted), sum(row.macs for row in report.unconverted)))
        (parts, macs), (whole, same_macs) = counts
        assert parts > whole == 1
        assert macs == same_macs
    padded = nn.TransformerEncoder(layer, 1)
    with torch.inference_mode(), profile() as report:
        padded(x, src_key_padding_mask=torch.arange(5).expand(2, 5) > torch.tensor([[4], [1]]))
    # Two sequences, of five and of two.
    expected = 7 * (8 * 32 + 2 * 8 * 12) + 2 * 8 * (25 + 4)
    assert [row.macs for row in report.unconverted] == [expected]


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
        def product(self, a: Any, b: Any) -> ProductBatch:
            values = super().product(a, b).values
            values.view(torch.int32)[0, 1, 2] ^= 1
            return ProductBatch(values)

    monkeypatch.setitem(backends._CLASSES, "golden", Wrong)
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
        matmul(torch.zeros(0, 4), torch.ones(4, 1), block=8)
        matmul(torch.zeros(2, 4), torch.ones(4, 1), block=16)
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
