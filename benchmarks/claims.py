"""Numeric claims of published documents, compared with measurements of this project.

Run with `python benchmarks/claims.py`; docs/claims.md shows the table. When a claim is true, the
module `claim` says.

Figures that take long, those of trained models, are read from docs/figures, where `make figures`
keeps them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import measures
import numpy as np
from claim import Claim, ClaimNumber, about, between, exactly

SPECIFICATION = "AXS-6 specification"
PAPER = "MX paper"
GUIDE = "MXFP8 guide"
QUARK = "Quark's page"

QSNR = "axs6 study qsnr"


def as_good(study: str, recipe: str, column: int = 0) -> ClaimNumber:
    """A recipe's result compared with FP32's: within its deviation between seeds."""
    value, _ = measures.trained(study, recipe, column)
    reference, deviation = measures.trained(study, "fp32")
    difference = value - reference
    low, high = (-np.inf, deviation) if study == "gpt" else (-deviation, np.inf)
    return ClaimNumber(difference, low, high, 4 if study == "gpt" else 2)


def ranges(name: str, *claimed: float) -> list[ClaimNumber]:
    """An element's largest value, and exponents of its smallest normal value and its smallest."""
    return [
        exactly(found, each, 0)
        for found, each in zip(measures.element_range(name), claimed, strict=True)
    ]


PARETO = "axs6 study pareto --data docs/data/pareto.jsonl --most 0"
GPT = "axs6 study training gpt"
VIT = "axs6 study training vit"

CLAIMS = (
    Claim(
        f"{SPECIFICATION}, 2",
        "6.25 bits a value",
        lambda: [exactly(measures.bits("axs6"), 6.25, 2)],
        command="axs6 list --formats",
    ),
    Claim(
        f"{SPECIFICATION}, 3",
        "6.3125, 6.625 and 7.25 bits a value in blocks of 32, 16 and 8",
        lambda: [
            exactly(measures.bits(measures.in_blocks("axs6", block)), claimed, 4)
            for block, claimed in ((32, 6.3125), (16, 6.625), (8, 7.25))
        ],
        command="axs6 info axs6_t16",
    ),
    Claim(
        f"{SPECIFICATION}, 1",
        "21.9 % less memory than FP8",
        lambda: [exactly(measures.saved("axs6"), 21.9, 1)],
        "%",
    ),
    Claim(
        f"{SPECIFICATION}, 3",
        "21.1, 17.2 and 9.4 % less than FP8 in blocks of 32, 16 and 8",
        lambda: [
            exactly(measures.saved(measures.in_blocks("axs6", block)), claimed, 1)
            for block, claimed in ((32, 21.1), (16, 17.2), (8, 9.4))
        ],
        "%",
    ),
    Claim(
        f"{SPECIFICATION}, 11",
        "a block of 32 takes 26 bytes",
        lambda: [exactly(measures.block_format("axs6").packed_bytes, 26, 0)],
        "bytes",
        "axs6 info axs6",
    ),
    Claim(
        f"{SPECIFICATION}, 2",
        "values up to 3.4e38",
        lambda: [about(measures.largest_value() / 1e38, 3.4)],
        "e38",
        "axs6 list --formats",
    ),
    Claim(
        f"{SPECIFICATION}, 10",
        "63 values in a block: 31 of either sign, and zero",
        lambda: [exactly(2 * len(measures.gaps("axs6")) + 1, 63, 0)],
        command="axs6 info axs6",
    ),
    Claim(
        f"{SPECIFICATION}, 1 and 10",
        "4.1 times smaller steps than FP8 E4M3: the widest of each, over the largest value",
        lambda: [about(float(max(measures.gaps("mxfp8_e4m3")) / max(measures.gaps("axs6"))), 4.1)],
        "times",
    ),
    Claim(
        f"{SPECIFICATION}, 1",
        "4 times better precision than FP8: the error's root mean square beside MXFP8 E4M3's",
        lambda: [about(measures.times_better("axs6", "mxfp8_e4m3"), 4)],
        "times",
        QSNR,
    ),
    Claim(
        f"{SPECIFICATION}, 12",
        "8 times better precision than MXFP6 E3M2, at nearly the same bits",
        lambda: [about(measures.times_better("axs6", "mxfp6_e3m2"), 8)],
        "times",
        QSNR,
    ),
    Claim(
        f"{SPECIFICATION}, 12",
        "8.25, 6.25 and 4.25 bits a value of MXFP8, MXFP6 and MXFP4",
        lambda: [
            exactly(measures.bits(name), claimed, 2)
            for name, claimed in (("mxfp8_e4m3", 8.25), ("mxfp6_e3m2", 6.25), ("mxfp4", 4.25))
        ],
        command="axs6 list --formats",
    ),
    Claim(
        f"{SPECIFICATION}, 7",
        "stochastic rounding has no bias: the mean over all random words, off by at most one word",
        lambda: [between(measures.stochastic_bias(), 0, 2.0**-measures.WORD, 6)],
        "steps",
    ),
    Claim(
        f"{SPECIFICATION}, 11",
        "products fit in 10 bits, and the sum of a block in 16 with its sign",
        lambda: [
            between(found, 0, most, 0)
            for found, most in zip(measures.dot_widths(), (10, 16), strict=True)
        ],
        "bits",
    ),
    Claim(
        f"{SPECIFICATION}, 10",
        "kurtosis of blocks in transformers from 2.1 to 3.5",
        lambda: [between(measures.kurtosis(), 2.1, 3.5)],
    ),
    Claim(
        f"{PAPER}, Table II",
        "9, 6 and 4 bits a value of MX9, MX6 and MX4",
        lambda: [exactly(measures.bits(f"mx{size}"), size, 2) for size in (9, 6, 4)],
        command="axs6 list --formats",
    ),
    Claim(
        f"{PAPER}, IV-C",
        "MX9 is 3.6 dB better than MSFP16",
        lambda: [about(measures.decibels("mx9", "msfp16"), 3.6)],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "MX9 is about 16 dB better than FP8 E4M3 with a scale for the tensor",
        lambda: [about(measures.decibels("mx9", "fp8_e4m3"), 16)],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "QSNR of MX6 lies between those of FP8 E5M2 and E4M3",
        lambda: [
            between(
                measures.levels()["mx6"],
                measures.levels()["fp8_e5m2"],
                measures.levels()["fp8_e4m3"],
            )
        ],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "QSNR of MX9 is 50 % above FP8's, and that of MX4 50 % below",
        lambda: [
            about(measures.levels()["mx9"] / measures.levels()["fp8_e4m3"], 1.5),
            about(measures.levels()["mx4"] / measures.levels()["fp8_e4m3"], 0.5),
        ],
        "times",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "2 bits a shift in place of 1 give 0.5 dB more, in MX9, MX6 and MX4",
        lambda: [
            about(measures.decibels(wide, name), 0.5) for wide, name in measures.microexponents()
        ],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "2 values a shift in place of 8 give about 2 dB more, in MX9, MX6 and MX4",
        lambda: [
            about(measures.decibels(measures.micro(each), measures.micro(each, 8)), 2)
            for each in (8, 5, 3)
        ],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "1 value a shift in place of 2 gives 0.7 dB more, in MX9, MX6 and MX4",
        lambda: [
            about(measures.decibels(measures.micro(each, 1), measures.micro(each)), 0.7)
            for each in (8, 5, 3)
        ],
        "dB",
        QSNR,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "a dot product of MX9 takes about as much area as one of FP8",
        lambda: [about(measures.in_hardware("mx9").area, 1)],
        "of FP8",
        PARETO,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "area times memory of MX6 is half of FP8's or less, and that of MX4 a quarter or less",
        lambda: [
            between(measures.in_hardware(name).cost, 0, 1.1 * most)
            for name, most in (("mx6", 1 / 2), ("mx4", 1 / 4))
        ],
        "of FP8",
        PARETO,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "2 bits a shift in place of 1 cost 30 to 50 % more, in MX9, MX6 and MX4",
        lambda: [
            between(measures.dearer(wide, name), 30, 50, 0)
            for wide, name in measures.microexponents()
        ],
        "%",
        PARETO,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "2 values a shift in place of 8 cost about 3 % more, in MX9, MX6 and MX4",
        lambda: [
            about(measures.dearer(measures.micro(each), measures.micro(each, 8)), 3, 0)
            for each in (8, 5, 3)
        ],
        "%",
        PARETO,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "1 value a shift in place of 2 costs 30 to 40 % more, in MX9, MX6 and MX4",
        lambda: [
            between(measures.dearer(measures.micro(each, 1), measures.micro(each)), 30, 40, 0)
            for each in (8, 5, 3)
        ],
        "%",
        PARETO,
    ),
    Claim(
        f"{PAPER}, VI-C",
        "dot products of MX6 and MX4 take about a half and a quarter of FP8's area",
        lambda: [
            about(measures.in_hardware(name).area, claimed)
            for name, claimed in (("mx6", 1 / 2), ("mx4", 1 / 4))
        ],
        "of FP8",
        PARETO,
    ),
    Claim(
        f"{PAPER}, IV-C",
        "QSNR grows in a straight line with the bits of a value: 6.02 dB a bit",
        lambda: [about(measures.slope(), 6.02)],
        "dB",
    ),
    Claim(
        f"{PAPER}, Theorem 1",
        "a lower bound of QSNR: what MX9, MX6 and MX4 are above it, at the least",
        lambda: [between(measures.theorem(f"mx{size}"), 0, np.inf) for size in (9, 6, 4)],
        "dB",
    ),
    Claim(
        f"{PAPER}, Table VII",
        "a GPT that is trained in MX9 has the loss of FP32: the difference, within that of seeds",
        lambda: [as_good("gpt", "mx9")],
        command=GPT,
    ),
    Claim(
        f"{PAPER}, Table III",
        "a vision transformer trained in MX9, or cast to it, has FP32's accuracy",
        lambda: [as_good("vit", "mx9"), as_good("vit", "mx9", 1)],
        "points",
        VIT,
    ),
    Claim(
        f"{PAPER}, Table III",
        "fine-tuning brings MX6 near FP32's accuracy",
        lambda: [as_good("vit", "mx6", 2)],
        "points",
        VIT,
    ),
    Claim(
        f"{GUIDE}, memory layout",
        "1.0625 bytes a value in blocks of 32, with scales of 16 bits",
        lambda: [exactly(measures.bits("e4m3fn_float16_t32") / 8, 1.0625, 4)],
        "bytes",
    ),
    Claim(
        f"{GUIDE}, memory layout",
        "the same of MXFP8 as the OCP specifies it",
        lambda: [exactly(measures.bits("mxfp8_e4m3") / 8, 1.0625, 4)],
        "bytes",
        "axs6 list --formats",
    ),
    Claim(
        f"{GUIDE}, memory savings",
        "71.9, 73.4 and 74.2 % less than FP32 in blocks of 16, 32 and 64, with scales of 16 bits",
        lambda: [
            exactly(measures.saved(f"e4m3fn_float16_t{block}", 32), claimed, 1)
            for block, claimed in ((16, 71.9), (32, 73.4), (64, 74.2))
        ],
        "%",
    ),
    Claim(
        f"{GUIDE}, memory savings",
        "175 billion values take 186 GB, with scales of 16 bits",
        lambda: [exactly(175 * measures.bits("e4m3fn_float16_t32") / 8, 186, 0)],
        "GB",
    ),
    Claim(
        f"{GUIDE}, FP8 formats",
        "E4M3: largest value 448, smallest normal 2^-6, smallest 2^-9 (as powers of two)",
        lambda: ranges("mxfp8_e4m3", 448, -6, -9),
    ),
    Claim(
        f"{GUIDE}, FP8 formats",
        "E5M2: largest value 57344, smallest normal 2^-14, smallest 2^-17 (as powers of two)",
        lambda: ranges("mxfp8_e5m2", 57344, -14, -17),
    ),
    Claim(
        f"{GUIDE}, FP8 formats",
        "E4M3 has no NaN: codes that are NaN",
        lambda: [exactly(measures.nan_codes("mxfp8_e4m3"), 0, 0)],
        "codes",
    ),
    Claim(
        f"{GUIDE}, accuracy analysis",
        "mean error 0.011 standard deviations for normal values in MXFP8 E4M3",
        lambda: [about(measures.gaussian_error("mxfp8_e4m3"), 0.011, 4)],
        "deviations",
    ),
    Claim(
        f"{GUIDE}, theory",
        "with outliers, a scale for each block is at least 6 dB better than one for the tensor",
        lambda: [between(measures.outliers("mxfp8_e4m3", "fp8_e4m3"), 6, np.inf)],
        "dB",
    ),
    Claim(
        f"{GUIDE}, GPT-2 and ablation",
        "smaller blocks are more exact: MXFP8 with 16 over 32, 32 over 64, 64 over 128",
        lambda: [
            between(measures.decibels(fine, coarse), 0.005, np.inf)
            for fine, coarse in pairwise(
                measures.in_blocks("mxfp8_e4m3", size) for size in (16, 32, 64, 128)
            )
        ],
        "dB",
    ),
    Claim(
        f"{GUIDE}, overview",
        "trained in MXFP8, accuracy is 0.1 to 0.5 % below FP32's, or better",
        lambda: [
            between(
                measures.trained("vit", "mxfp8")[0] - measures.trained("vit", "fp32")[0],
                -0.5,
                np.inf,
            )
        ],
        "points",
        VIT,
    ),
    Claim(
        f"{QUARK}, introduction",
        "bits a value are m + 1 + d1 / k1 + d2 / k2: MX9 and MX6",
        lambda: [exactly(measures.bits(f"mx{m + 2}"), m + 1 + 8 / 16 + 1 / 2, 2) for m in (7, 4)],
        command="axs6 list --formats",
    ),
    Claim(
        f"{QUARK}, scales",
        "MX9's steps: values of 262,144 that differ from the page's rule, rounded to even",
        lambda: [exactly(measures.differs_from_quark(), 0, 0)],
        "values",
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the claims, or write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file")
    options = parser.parse_args(arguments)
    rows = [claim.row() for claim in CLAIMS]
    for row in rows:
        print(f"{row['verdict']:6}  {row['source']}: {row['claim']}: {row['measured']}")
    if options.json:
        options.json.write_text(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
