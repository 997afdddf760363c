"""Sources of figures, and the formats and designs that figures measure."""

from collections.abc import Iterable, Sequence

from digests import ROOT

from axs6.golden.formats import CATALOG, ROW_FORMATS, Exponent, Rule, Shift
from axs6.hw.decoder.plan import decoded
from axs6.hw.dot.shape import multiplied
from axs6.hw.encoder.encoder import encoded
from axs6.sim.imports import imported, module_file
from axs6.studies.comparison.hardware import unit_of


def files_of(package: str, *names: str) -> tuple[str, ...]:
    """Files of modules of a package, and of all modules of it that these import, anywhere."""
    found = map(module_file, imported([f"{package}.{name}" for name in names], [package]))
    return tuple(sorted(str(x.resolve().relative_to(ROOT.resolve())) for x in found if x))


SKY130 = tuple(
    f"synth/{name}"
    for name in (
        "fanout.py",
        "flow.py",
        "scripts.py",
        "sky130.csv",
        "sky130.py",
        "timing.py",
    )
)
"""Sources of areas and delays on sky130, besides the design and Yosys."""

ADDERS = tuple(f"synth/{name}.py" for name in ("adder_groups", "adders", "worker"))
"""Sources that decide which full adders become cells, with adder cells."""

GENERIC = tuple(f"synth/{name}.py" for name in ("fanout", "flow", "gates", "scripts"))
"""The same for the generic gates."""

ENERGY = tuple(f"synth/{name}.py" for name in ("capacitance", "energy", "energy_stimulus"))
"""More sources of energies."""

QSNR = ("studies/distributions.py", "studies/qsnr.py")
"""Sources of random vectors and of their QSNR."""

COMPARISON = "studies/comparison/*.py"
"""How `axs6 compare` measures, and studies that use it."""

MODELS = tuple(f"studies/{name}.py" for name in ("accuracy", "data", "models"))
"""Sources of the models and of their accuracy."""

LANGUAGE = "studies/language/*.py"
"""How perplexities are measured."""

FOUR_BITS = ("mxfp4", "nvfp4", "mx4", "int4", "vsq4", "msfp12")
"""Formats that are measured with what people put around a format."""

CHOSEN = {"mse": ("mxfp4", "nvfp4", "vsq4", "msfp12"), "four-over-six": ("nvfp4",)}
"""Formats of these that can choose their scales, by the choice."""

TORCH_BITS = (
    *files_of("axs6.torch", "feedback", "lfsr", "ops", "quantised_gradients"),
    "bridge/kernels/*.[ch]pp",
)
"""Sources of the bits of the torch bridge."""

SIMULATORS = ("sim/batch/*.[hp]*", "sim/compiler.py", "sim/compiled.py", "sim/*.hpp")
"""Sources of the speed of the batch simulator, besides the design."""

BESIDE_VERILATOR = ("benchmarks/simulators.py", "benchmarks/verilated.py")
"""Sources that run it next to other simulators."""

CXXRTL = ("sim/cxxrtl/*.[hp]*", "sim/compiler.py", "sim/compiled.py", "sim/*.hpp")

BLOCK_DOT = ("block_dot", {"block": 32})

FORMATS = tuple(name for name, fmt in ROW_FORMATS.items() if multiplied(fmt))
"""Formats with a dot product in hardware. Units of formats with tiles are those of their rows."""

DECODED = tuple(name for name in FORMATS if decoded(CATALOG[name]))
"""Those that have a decoder in hardware too."""

ENCODED = tuple(name for name in FORMATS if encoded(CATALOG[name]) or CATALOG[name].has_modes)
"""Those that have an encoder."""

ENCODED_FORMATS = tuple(
    name
    for name in ENCODED
    if all(isinstance(level.scale, Exponent | Shift) for level in CATALOG[name].levels)
)
"""Formats whose encoders are measured. Other encoders divide, and take minutes to synthesise."""

COSTED = tuple(ROW_FORMATS)
"""Formats of the figures `costs`, `comparison-accuracy` and `formats`."""

BY_FORMAT: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("block_dot", {}, FORMATS),
    ("encoder", {"dtype": "bf16"}, ENCODED),
    ("decoder", {"dtype": "bf16"}, DECODED),
)
"""Units of formats, with their other parameters and the formats that have them."""

AREAS_BY_FORMAT = tuple(
    (
        unit,
        others,
        tuple(x for x in names if unit != "encoder" or x in ENCODED_FORMATS),
    )
    for unit, others, names in BY_FORMAT
)
"""Those whose areas are measured one by one."""

FORMAT_DESIGNS = tuple(
    (unit, {"format": name, **others}) for unit, others, names in AREAS_BY_FORMAT for name in names
)


def in_formats(*options: str) -> tuple[str, ...]:
    """Commands that measure areas in formats: of those units, or of dot products with options."""
    units = AREAS_BY_FORMAT[:1] if options else AREAS_BY_FORMAT
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


COST_SHOWN = (
    *("lanes", "dot_area", "mac_area", "delay_ps", "of_bound"),
    *("encoder_area", "decoder_area", "mac_fj"),
)
"""Columns of their table."""


def compared_units(names: Sequence[str]) -> tuple[tuple[str, dict[str, str]], ...]:
    """The units that `axs6 compare` measures in formats."""
    return tuple(
        (unit, {"format": name, **others})
        for unit, others, known in BY_FORMAT
        for name in known
        if name in names
    )


def encoders(names: Iterable[str]) -> tuple[tuple[str, dict[str, str]], ...]:
    """The encoders of formats, as `axs6 compare` takes them."""
    return tuple((unit_of("encoder", name), {"format": name, "dtype": "bf16"}) for name in names)


OVERVIEW = ("axs6", "mx9", "mx6", "mx4", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4", "int8")
"""Formats of the table in README."""

SHOWN = (
    *("memory_bits", "paper_db", "outliers_db", "weights_db"),
    *("mac_area", "mac_fj", "token_uj", "perplexity"),
)
"""Its columns."""

FOUR = (
    *("mx4", "msfp12", "mxfp4", "mxfp4_16", "mxfp4_mse"),
    *("nvfp4", "nvfp4_four-over-six", "nvfp4_ue5m3", "hif4", "if4", "razer"),
    *("vsq4", "int4", "nf4q6"),
)
"""Formats of 4-bit elements that are held against each other."""

FOUR_SHOWN = (
    *("bits", "paper_db", "outliers_db", "weights_db", "perplexity"),
    *("mac_area", "delay_ps", "mac_fj", "value_area"),
)
"""Columns of their table."""

FOUR_UNITS = (
    *compared_units(FOUR),
    *encoders(name for name in FOUR if name not in CATALOG),
)
"""The units of these formats."""

RULED = (
    *("axs6", "mx9", "mx6", "mx4", "mxint8"),
    *("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp4"),
)
"""Formats whose rules of the scale are measured."""

RULED_ENCODERS = tuple(
    ("encoder", {"format": str(CATALOG[name].with_rule(rule)), "dtype": "bf16"})
    for name in RULED
    for rule in Rule
    if rule is Rule.FLOOR or not CATALOG[name].has_modes
)
"""Their encoders under each rule. That of blocks with modes is there under `floor` alone."""

SIMULATED = ("block_dot", {"block": 32, "view": "behaviour"})
ENCODED = ("encoder", {"block": 32, "view": "behaviour"})

SIMULATED_FORMATS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("block_dot", {"format": name}) for name in ("axs6", "mx9", "mx6", "mxfp4", "mxfp8_e4m3")),
    ("dot", {"format": "mxfp8_e4m3", "accumulator": "blackwell_mx"}),
)
"""Dot products whose simulation is compared with Verilator's; the last is fused."""

ENCODING = (
    "bits", "blocks", "decode", "encode", "factors", "finite", "levels", "modes", "outer", "pack",
    "quantise", "scaling",
)  # fmt: skip
"""Sources of the speed of the golden model's encode, decode and pack."""

CHECKPOINTS = (
    *(
        f"files/checkpoints/{name}.py"
        for name in ("convert", "held", "interleaved", "numbers", "recode", "weight", "write")
    ),
    "files/stored.py",
    "files/writer.py",
)
"""Sources of the speed of converting checkpoints."""

CODES = ("encode", "factors", "levels", "quantise", "scaling")
"""Sources of the codes of values."""

PRODUCTS = ("dot", "scale_factor", "floats", "fp32", "kulisch", "operands", "sums", "terms")
"""Sources of the speed of its matrix products."""
