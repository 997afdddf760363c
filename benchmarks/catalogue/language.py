"""Figures of language models and sentence encoders."""

import reading_language as readings
from figure import Figure
from readings import printed

from catalogue.depends import CHOSEN, FORMATS, FOUR_BITS, LANGUAGE, TORCH_BITS

WINDOWS = "--data docs/data/perplexity.jsonl"
"""The windows of language models that were run, which a run goes on from."""

RUN = (*FORMATS, "uint8", "mxfp8_32x32")
"""Formats that language models run in: all but those that torch computes in the golden model."""

WEIGHTS_ALONE = tuple(
    f"{name}xfp32"
    for name in (
        *("axs6", "mx6", "if4", "razer", "nf4", "hif4"),
        *("nvfp4", "mxfp4", "int4", "mx4"),
    )
)
"""Formats that language models are measured in with activations in FP32."""

AROUND = {
    "nearest": "",
    "rotated": "--rotate 32",
    "smoothed": "--smooth 0.5",
    "gptq": "--weights gptq",
    "rotated, gptq": "--rotate 32 --weights gptq",
}
"""Techniques around all 4-bit formats, and their options."""

PLACES = "--tokens 384 --window 128 --data docs/data/sensitivity.jsonl"
"""Options with which one place of products at a time is measured."""

PACKAGES = ("torch", "transformers")


def perplexity(names: tuple[str, ...], options: str = "") -> str:
    """The command that measures formats with options."""
    parts = ("axs6 study perplexity smollm2 --format", ",".join(names), options, WINDOWS)
    return " ".join(part for part in parts if part)


LANGUAGE_MODELS = (
    Figure(
        "perplexity",
        (f"{perplexity(RUN)} --pareto docs/data/pareto.jsonl -o study",),
        readings.perplexity,
        sources=(
            LANGUAGE,
            "docs/data/pareto.jsonl",
            "docs/data/perplexity.jsonl",
            "studies/pareto/*.py",
        ),
        packages=("matplotlib", *PACKAGES),
        as_json=True,
        pictures={
            "study/perplexity.svg": "perplexity.svg",
            "study/perplexity-pareto.svg": "perplexity-pareto.svg",
        },
    ),
    Figure(
        "perplexity-weights",
        (perplexity(WEIGHTS_ALONE),),
        printed,
        sources=(LANGUAGE, "docs/data/perplexity.jsonl"),
        packages=PACKAGES,
    ),
    Figure(
        "perplexity-around",
        (
            *(perplexity(FOUR_BITS, options) for options in AROUND.values()),
            *(perplexity(names, f"--scale {choice}") for choice, names in CHOSEN.items()),
        ),
        readings.around((*AROUND, *CHOSEN)),
        sources=(LANGUAGE, "docs/data/perplexity.jsonl"),
        packages=PACKAGES,
        as_json=True,
    ),
    Figure(
        "perplexity-ranking",
        ("python benchmarks/ranking.py docs/data/perplexity.jsonl",),
        printed,
        sources=(LANGUAGE, "benchmarks/ranking.py", "docs/data/perplexity.jsonl"),
        packages=PACKAGES,
    ),
    Figure(
        "sensitivity",
        (f"axs6 study sensitivity smollm2 --format mxfp4 {PLACES}",),
        readings.sensitivity,
        sources=(LANGUAGE, "docs/data/sensitivity.jsonl"),
        packages=PACKAGES,
        as_json=True,
    ),
    Figure(
        "similarity",
        (
            f"axs6 study similarity minilm --format {','.join(RUN)} "
            "--data docs/data/similarity.jsonl",
        ),
        printed,
        sources=(LANGUAGE, "docs/data/similarity.jsonl"),
        packages=PACKAGES,
    ),
    Figure(
        "language-speed",
        ("python benchmarks/language.py",),
        printed,
        sources=("benchmarks/language.py", LANGUAGE, *TORCH_BITS),
        packages=PACKAGES,
        varies=r" +\d+\.\d+(?= s| x CPU)|; torch.*(?=\")",
    ),
)
