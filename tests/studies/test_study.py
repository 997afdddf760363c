import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from matplotlib.image import imread
from torch import Tensor, nn

from axs6.studies.accuracy import AccuracyStudy, study_accuracy
from axs6.studies.data import digits
from axs6.studies.figure import picture
from axs6.studies.models import MODELS
from axs6.studies.workload import Workload
from axs6.torch import Policy, convert
from axs6.torch.backends import ProductBatch, Rtl

TILE = {"rows": 1, "columns": 2}
FORMATS = ("axs6_t8", "axs6_t16")
"""As many as a study has two of something; the tile of the third takes g++ as long as both."""

trained = cache(lambda name: MODELS[name]())


@cache
def studied(name: str) -> AccuracyStudy:
    return study_accuracy(name, trained(name), formats=FORMATS, samples=16, tile=TILE)


def test_the_parts_of_the_digits_share_no_image() -> None:
    data = digits()
    assert (len(data.labels), len(data.test_labels)) == (898, 899)
    one, other = ({x.numpy().tobytes() for x in part} for part in (data.images, data.test_images))
    assert not one & other
    assert all(int((data.test_labels == digit).sum()) > 80 for digit in range(10))


@pytest.mark.parametrize(
    "name",
    ["mlp", *(pytest.param(each, marks=pytest.mark.slow) for each in ("cnn", "transformer"))],
)
def test_training_has_one_outcome(name: str) -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    again = MODELS[name]().model.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    first = trained(name).model.state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)


@pytest.mark.parametrize(
    "name", ["mlp", "cnn", pytest.param("transformer", marks=pytest.mark.slow)]
)
def test_the_whole_test_part_in_fp32_and_emulated(name: str) -> None:
    study = study_accuracy(name, trained(name), backends=["emulated"])
    assert study.samples == 899
    assert study.reference.metric > 0.95
    assert [run.format for run in study.runs] == [None, "axs6_t8", "axs6_t16", "axs6"]
    for run in study.runs[1:]:
        assert abs(run.metric - study.reference.metric) < 0.02
        assert run.qsnr_db is not None
        assert run.qsnr_db > 20


@pytest.mark.slow  # tests/bridge/test_rtl.py has layers in every run
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "mlp")) for x in MODELS]
)
def test_the_rtl_has_the_emulated_bits(name: str) -> None:
    study = studied(name)
    for emulated, rtl in zip(study.runs[1::2], study.runs[2::2], strict=True):
        assert (emulated.backend, rtl.backend) == ("emulated", "rtl")
        assert emulated.format == rtl.format
        assert (emulated.metric, emulated.qsnr_db) == (rtl.metric, rtl.qsnr_db)
        assert emulated.bits_different is None
        assert rtl.bits_different == 0
        assert rtl.bits_compared is not None
        assert rtl.bits_compared > 32 * 16 * 10
        assert rtl.cycles == sum(layer["cycles"] for layer in rtl.layers)
        assert rtl.utilisation is not None
        assert 0 < rtl.utilisation <= 1
    assert study.bits_different == 0


@pytest.mark.slow
def test_the_rtl_of_every_format_has_the_emulated_bits() -> None:
    assert study_accuracy("mlp", trained("mlp"), samples=16, tile=TILE).bits_different == 0


@pytest.mark.slow  # g++ takes half a minute over the default tile
def test_the_perceptron_takes_less_than_a_second_on_the_rtl() -> None:
    # The best of some: other workers may hold the machine.
    seconds = [
        study_accuracy("mlp", trained("mlp"), formats=["axs6"], backends=["rtl"]).runs[1].seconds
        for _ in range(5)
    ]
    assert min(seconds) < 1


def test_the_bits_compared_are_those_of_products_and_outputs() -> None:
    workload = Workload(nn.Linear(40, 3), torch.randn(10, 40), torch.zeros(10, dtype=torch.int64))
    alone = study_accuracy("linear", workload, formats=["axs6_t8"], backends=["rtl"], tile=TILE)
    both = study_accuracy("linear", workload, formats=["axs6_t8"], batch=4, tile=TILE)
    assert alone.runs[1].bits_compared == 32 * 30
    assert both.runs[2].bits_compared == 2 * 32 * 30
    assert both.runs[2].layers[0]["calls"] == 3


def test_one_wrong_bit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Rtl.product

    def wrong(self: Rtl, a: object, b: object) -> ProductBatch:
        result = right(self, a, b)  # type: ignore[arg-type]
        values = result.values.clone()
        values.view(torch.int32)[0, 0, 0] ^= 1
        return replace(result, values=values)

    monkeypatch.setattr(Rtl, "product", wrong)
    workload = Workload(nn.Linear(8, 3, bias=False), torch.ones(4, 8), torch.zeros(4))
    workload = replace(workload, metric=lambda outputs, targets: float(outputs.mean()))
    study = study_accuracy("linear", workload, formats=["axs6_t8"], backends=["rtl"], tile=TILE)
    assert study.bits_different == 1


def test_json_holds_every_run() -> None:
    content = json.loads(json.dumps(studied("mlp").to_dict(), allow_nan=False))
    assert content["study"] == "accuracy"
    assert (content["model"], content["metric"], content["samples"]) == ("mlp", "accuracy", 16)
    assert content["machine"]["torch"] == torch.__version__
    assert [(run["backend"], run["format"]) for run in content["runs"]] == [
        ("fp32", None),
        *((backend, x) for x in FORMATS for backend in ("emulated", "rtl")),
    ]


def test_pictures_are_valid_and_repeatable() -> None:
    study = studied("mlp")
    assert imread(io.BytesIO(picture(study, "png")), format="png").shape[2] == 4
    drawing = picture(study)
    assert drawing == picture(study)
    text = " ".join(ET.fromstring(drawing).itertext())
    assert {"RTL", "axs6_t16"} <= set(text.split())
    assert "cycles per sample" in text
    emulated = replace(study, runs=[run for run in study.runs if run.backend != "rtl"])
    assert b"cycles per sample" not in picture(emulated)
    with pytest.raises(ValueError, match="kind must be one of svg, png, not 'bmp'"):
        picture(study, "bmp")


LINEAR = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model", torch.ones(1), torch.ones(1)), "model must be a torch.nn.Module, not str"),
        ((LINEAR, [1], torch.ones(1)), "inputs must be a tensor or several, not list"),
        ((LINEAR, torch.ones(1), [1]), "targets must be a tensor, not list"),
        ((LINEAR, torch.ones(3, 2), torch.ones(2)), r"as many samples, not \[3, 2\]"),
        ((LINEAR, torch.ones(0, 2), torch.ones(0)), r"as many samples, not \[0, 0\]"),
        ((LINEAR, (), torch.ones(2)), r"as many samples, not \[2\]"),
        ((LINEAR, torch.ones(1, 2), torch.ones(1), "f1"), "or a function, not 'f1'"),
        ((LINEAR, torch.ones(1, 2), torch.ones(1), 3), "a name or a function, not int"),
        ((nn.Linear(2, 2).half(), torch.ones(1, 2), torch.ones(1)), "weight is torch.float16"),
    ],
)
def test_bad_workloads_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Workload(*arguments)  # type: ignore[arg-type]


class Pair(nn.Module):
    def __init__(self, end: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.linear, self.end = nn.Linear(2, 2), end

    def forward(self, a: Tensor, b: Tensor) -> object:
        return self.end(self.linear(a + b))


@pytest.mark.parametrize(
    ("end", "metric", "message"),
    [
        (lambda y: {"y": y}, "accuracy", "must return a float32 tensor, not dict"),
        (lambda y: y.double(), "accuracy", "must return a float32 tensor, not torch.float64"),
        (lambda y: y.sum(), lambda y, t: 0.0, "zero-dimensional"),
        (lambda y: y[0], "accuracy", r"needs outputs of shape \(3, 'classes'\), not \(2,\)"),
        (lambda y: y, lambda y, t: torch.nan, "must be a finite number, not nan"),
        (lambda y: y, lambda y, t: y, "must be a finite number, not tensor"),
    ],
)
def test_bad_outputs_are_refused(
    end: Callable[[Tensor], object], metric: str, message: str
) -> None:
    workload = Workload(Pair(end), (torch.ones(3, 2), torch.ones(3, 2)), torch.zeros(3), metric)
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        study_accuracy("pair", workload, formats=["axs6_t8"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be an integer of at least 1, not 0"),
        ({"batch": 0}, "batch must be an integer of at least 1, not 0"),
        ({"formats": ["mx8"]}, "'mx8' is no block format"),
        ({"backends": ["golden"]}, "backend must be one of emulated, rtl, not 'golden'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    workload = Workload(nn.Linear(2, 2), torch.ones(3, 2), torch.zeros(3))
    with pytest.raises(ValueError, match=message):
        study_accuracy("linear", workload, **options)


def test_a_model_without_products_is_refused() -> None:
    workload = Workload(nn.ReLU(), torch.ones(3, 2), torch.zeros(3))
    with pytest.raises(ValueError, match="must have a matrix product"):
        study_accuracy("relu", workload)


def test_cross_entropy_is_torchs_over_every_target() -> None:
    torch.manual_seed(0)
    targets = torch.randint(5, (6, 7))
    workload = Workload(nn.Linear(4, 5), torch.randn(6, 7, 4), targets, "cross_entropy")
    study = study_accuracy("tokens", workload, formats=["axs6_t8"], backends=["emulated"])
    with torch.no_grad():
        y = convert(workload.model, block=8)(workload.inputs).double()
    needed = nn.functional.cross_entropy(y.mT, targets)
    assert study.runs[1].metric == pytest.approx(float(needed), rel=1e-12)


def test_formats_and_policies_of_a_users_model() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 20), nn.Linear(20, 3))
    workload = Workload(model, torch.randn(10, 40), torch.zeros(10, dtype=torch.int64))
    policy = Policy.from_dict({"format": "mx6", "layers": [{"position": "last", "format": "fp32"}]})
    formats = ["mx6", "mx9", "mxfp8_e4m3", "int8", "nvfp4"]
    study = study_accuracy(
        "mine", workload, formats=formats, policies={"p.toml": policy}, backends=["emulated"]
    )
    assert [run.format for run in study.runs] == [None, *formats, "p.toml"]
    found = {run.format: run.qsnr_db for run in study.runs[1:]}
    assert found["mx9"] > found["mx6"] + 12
    assert found["p.toml"] > found["mx6"]
    for kind in ("svg", "png"):
        assert picture(study, kind) == picture(study, kind)
