"""The study of QSNR: whole tensors in chunks, the distribution, and numbers known beforehand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import axs6
from axs6.studies.distributions import CHUNK, LENGTH, draw
from axs6.studies.qsnr import CLAIMS, FORMATS, study_qsnr

ROOT = Path(__file__).parents[2]

KNOWN = {
    "axs6": 29.69,
    "axs6_t16": 30.68,
    "axs6_t8": 31.87,
    "mx9": 46.60,
    "mx6": 28.37,
    "mx4": 15.77,
    "mxfp8_e4m3": 30.49,
    "mxfp8_e5m2": 25.34,
    "mxfp6_e2m3": 30.97,
    "mxfp6_e3m2": 25.34,
    "mxfp4": 18.75,
    "mxint8": 42.01,
    "msfp16": 42.99,
    "msfp12": 18.85,
    "fp8_e4m3": 31.53,
    "int8": 30.40,
    "int8_float32_t0": 42.09,
    "int6": 18.41,
    "int6_float32_t0": 29.84,
    "vsq6": 33.61,
    "int6_u8_t16_float32_t0": 34.25,
}
"""In dB, of 10,000 vectors, found independently of this project's code."""

CLAIMED = {"3.6": 0.05, "0.5": 0.1, "about 2": 0.1, "0.7": 0.1}
"""How near to the paper a difference comes: of MX4 where the paper names no format."""


def tolerance(name: str) -> float:
    """Of a whole tensor the largest of all values decides, which every draw has another of."""
    tensor = any(level.group == "tensor" for level in axs6.block_format(name).levels)
    return 0.3 if tensor else 0.05


def test_the_page_has_the_known_numbers() -> None:
    kept = json.loads((ROOT / "docs" / "figures" / "qsnr.json").read_text())
    rows = [line.split() for line in kept["output"][0]]
    found = {row[0]: float(row[2]) for row in rows if len(row) == 3 and row[0] in KNOWN}
    assert found.keys() == KNOWN.keys()
    for name, known in KNOWN.items():
        assert found[name] == pytest.approx(known, abs=tolerance(name)), name


@pytest.mark.slow
def test_known_numbers_are_reproduced() -> None:
    study = study_qsnr()
    found = {row.format: row.qsnr_db for row in study.rows}
    for name, known in KNOWN.items():
        assert found[name] == pytest.approx(known, abs=tolerance(name)), name
    for each in study.differences:
        claim, measured = each.claim, each.measured
        if claim.paper == "more than 0":
            assert measured > 0
        elif claim.paper == "about 16":
            assert round(measured) in (15, 16)
        elif claim.worse in ("mx4", "msfp16") or claim.better == "mx4":
            value = float(claim.paper.split()[-1])
            assert measured == pytest.approx(value, abs=CLAIMED[claim.paper]), claim
        else:
            assert 0 < measured - float(claim.paper.split()[-1]) < 0.5, claim


@pytest.mark.parametrize("name", ["axs6", "mx9", "mxfp4", "msfp16", "vsq6", "int6_float32_t0"])
def test_a_tenth_of_the_vectors_comes_near(name: str) -> None:
    (row,) = study_qsnr([name], 1000).rows
    assert row.qsnr_db == pytest.approx(KNOWN[name], abs=0.1)


@pytest.mark.parametrize("name", ["int8", "nvfp4", "uint8", "fp8_e5m2", "mx6", "vsq4"])
def test_chunks_make_no_difference(name: str) -> None:
    whole = np.concatenate(list(draw(CHUNK + 70, 1)))
    (row,) = study_qsnr([name], CHUNK + 70, seed=1).rows
    assert row.qsnr_db == pytest.approx(axs6.qsnr(whole, name), abs=1e-9)
    first = axs6.qsnr(whole[:CHUNK], name)
    assert abs(first - row.qsnr_db) > 1e-4, "the example does not tell chunks from the whole"


def test_integers_with_a_scale_of_the_tensor_follow_from_its_largest_value() -> None:
    """Errors are uniform within half a step, amax / 127, and smaller in vectors of small values."""
    x = np.concatenate(list(draw(CHUNK, 0))).astype(np.float64)
    step = np.abs(x).max() / 127
    (row,) = study_qsnr(["int8"], CHUNK).rows
    assert 0 < row.qsnr_db - 10 * math.log10(np.mean(x**2) / (step**2 / 12)) < 0.1


def test_vectors_are_normal_each_with_its_own_deviation() -> None:
    x = np.concatenate(list(draw(2000, 5)))
    assert (x.shape, x.dtype) == ((2000, LENGTH), np.float32)
    deviations = x.astype(np.float64).std(axis=1)
    # |N(0, 1)|: mean sqrt(2 / pi), median 0.6745.
    assert deviations.mean() == pytest.approx(math.sqrt(2 / math.pi), abs=0.05)
    assert np.median(deviations) == pytest.approx(0.6745, abs=0.05)
    scaled = x / deviations[:, None]
    assert np.mean(np.abs(scaled) < 1) == pytest.approx(0.6827, abs=0.002)
    assert np.array_equal(np.concatenate(list(draw(30, 5))), x[:30])
    assert not np.array_equal(x[:CHUNK], x[CHUNK : 2 * CHUNK])


def test_formats_that_are_asked_for_come_alone_and_in_order() -> None:
    study = study_qsnr(["mx9_t32", "e4m3fn_e8m0_t32", axs6.block_format("axs6")], 3)
    assert [row.format for row in study.rows] == ["mx9_t32", "mxfp8_e4m3", "axs6"]
    assert [row.bits for row in study.rows] == [8.75, 8.25, 6.3125]
    assert study.differences == []


def test_every_claim_is_of_formats() -> None:
    study = study_qsnr(vectors=2)
    assert [row.format for row in study.rows] == list(FORMATS)
    assert set(axs6.formats()) <= set(FORMATS)
    assert [each.claim for each in study.differences] == list(CLAIMS)
    rows = {row.format: row.qsnr_db for row in study.rows}
    assert study.differences[0].measured == rows["mx9"] - rows["msfp16"]


@pytest.mark.parametrize(
    ("formats", "vectors", "seed"), [(["mx99"], 1, 0), (["mx9"], 0, 0), ([], 1, -1)]
)
def test_what_is_wrong_is_refused(formats: list[str], vectors: int, seed: int) -> None:
    with pytest.raises(ValueError, match=r"no block format|vectors must be|seed must be"):
        study_qsnr(formats, vectors, seed)
