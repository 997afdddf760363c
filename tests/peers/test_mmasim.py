"""Named tensor and matrix cores beside MMA-Sim, which models measured silicon: the same bits."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import axs6
from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.blocks import Blocks
from axs6.golden.formats import FP16, block_format

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

ROWS, LENGTH = 100, 256
DTYPES = {"e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn"}
AMD_DTYPES = {"e5m2fnuz": "float8_e5m2fnuz", "e4m3fnuz": "float8_e4m3fnuz"}
PLACES = {"e3m2": 0, "e2m3": 0, "e2m1": 2}
"""Elements that MMA-Sim takes in bytes, and the lowest bit there."""


WITHOUT_NAN = {"f32_16x16x32_bf8_bf8"}
"""Instructions in which MMA-Sim takes a NaN accumulator for 0 where products are 2^25 or more: its
exponent is -1 there, out of reach."""


class Core(NamedTuple):
    """An instruction of MMA-Sim, and what it is here.

    Args:
        name: accumulator.
        operation: class of MMA-Sim.
        arch, shape: its arguments.
        elements: of both operands.
        scales: of blocks, as in strings of formats; none for products without.
        as_dtype: dtype of the operands, where it is not that of the elements.
        module: of MMA-Sim.
    """

    name: str
    operation: str
    arch: str
    shape: str
    elements: tuple[str, str]
    scales: str = ""
    as_dtype: str = ""
    module: str = "nv_ptx"

    @property
    def by_value(self):
        """Whether only the values of operands count, and not the exponents that they have."""
        return ACCUMULATORS[self.name].fraction is None

    @property
    def half(self):
        """Whether the accumulator is FP16."""
        return ACCUMULATORS[self.name].output == FP16


def cores():
    """Every named core, with operands of every kind that it has."""
    yield from tensor_cores()
    yield from half_cores()
    yield from matrix_cores()


def half_cores():
    """Tensor cores with an FP16 accumulator, and those of TF32 products."""
    e5m2 = ("e5m2", "e5m2")
    for name, arch, k in (
        ("volta_to_fp16", "Volta", "8n8k4"),
        ("volta_to_fp16", "Turing", "8n8k4"),
        ("turing_to_fp16", "Turing", "16n8k8"),
        ("ampere_to_fp16", "Ampere", "16n8k16"),
        ("hopper_to_fp16", "Hopper", "16n8k16"),
        ("hopper_k8_to_fp16", "Hopper", "16n8k8"),
    ):
        yield Core(name, "MMA", arch, f"m{k}.f16.f16.f16.f16", e5m2, "", "float16")
    for pair in (e5m2, ("e4m3", "e5m2"), ("e4m3", "e4m3")):
        types = ".".join(pair)
        yield Core("ada_fp8_to_fp16", "MMA", "Ada Lovelace", f"m16n8k32.f16.{types}.f16", pair)
        yield Core("hopper_fp8_to_fp16", "WGMMA", "Hopper", f"m64n8k32.f16.{types}", pair)
    for pair in (*((x, x) for x in (*DTYPES, *PLACES)), ("e4m3", "e2m1")):
        kind = f"m64n8k32.kind::f8f6f4.f16.{'.'.join(pair)}"
        yield Core("blackwell_to_fp16", "TCGen05MMA", "Blackwell", kind, pair)
    for name, arch, k in (
        ("ampere_tf32", "Ampere", 8),
        ("hopper_tf32", "Hopper", 8),
        ("hopper_tf32_k4", "Hopper", 4),
    ):
        shape = f"m16n8k{k}.f32.tf32.tf32.f32"
        yield Core(name, "MMA", arch, shape, e5m2, "e8m0_t32", "float32")


def matrix_cores():
    """Matrix cores of AMD."""
    e5m2, mx, amd = ("e5m2", "e5m2"), "e8m0_t32", "amd"
    wide = ("e2m3", "e2m3"), "e4m3fn_t16"  # of eight significant bits
    for arch, name, suffix in (
        ("CDNA1", "cdna1", "f32_32x32x8f16"),
        ("CDNA2", "cdna2", "f32_32x32x8f16"),
        ("CDNA3", "cdna3", "f32_32x32x8_f16"),
    ):
        yield Core(name, "MFMA", arch, suffix, e5m2, "", "float16", amd)
        if name != "cdna3":
            yield Core(name, "MFMA", arch, suffix, *wide, "float16", amd)
    for arch, name, suffix in (
        ("CDNA1", "cdna1_bf16", "f32_32x32x4bf16"),
        ("CDNA2", "cdna2_bf16", "f32_32x32x4bf16"),
        ("CDNA2", "cdna2_bf16_1k", "f32_32x32x8bf16_1k"),
        ("CDNA3", "cdna3", "f32_32x32x8_bf16"),
    ):
        yield Core(name, "MFMA", arch, suffix, e5m2, mx, "bfloat16", amd)
        if name != "cdna3":
            yield Core(name, "MFMA", arch, suffix, *wide, "bfloat16", amd)
    for arch, suffix in (("CDNA1", "f32_32x32x2f32"), ("CDNA3", "f32_32x32x2_f32")):
        yield Core("cdna_fp32", "MFMA", arch, suffix, e5m2, mx, "float32", amd)
        yield Core("cdna_fp32", "MFMA", arch, suffix, *wide, "float32", amd)
    yield Core("cdna3_xf32", "MFMA", "CDNA3", "f32_16x16x8_xf32", e5m2, mx, "float32", amd)
    for pair in product(AMD_DTYPES, repeat=2):
        types = "_".join({"e5m2fnuz": "bf8", "e4m3fnuz": "fp8"}[x] for x in pair)
        yield Core("cdna3_fp8", "MFMA", "CDNA3", f"f32_16x16x32_{types}", pair, module=amd)


def tensor_cores():
    """Tensor cores with an FP32 accumulator, of 16-bit and smaller operands."""
    e5m2 = ("e5m2", "e5m2")
    for name, arch, k in (("volta", "Volta", "8n8k4"), ("turing", "Turing", "16n8k8")):
        yield Core(name, "MMA", arch, f"m{k}.f32.f16.f16.f32", e5m2, "", "float16")
    for name, arch in (("ampere", "Ampere"), ("hopper", "Hopper")):
        yield Core(name, "MMA", arch, "m16n8k16.f32.f16.f16.f32", e5m2, "", "float16")
        scales = ("e8m0_t32", "bfloat16")
        yield Core(name, "MMA", arch, "m16n8k16.f32.bf16.bf16.f32", e5m2, *scales)
    for pair in (e5m2, ("e4m3", "e5m2"), ("e4m3", "e4m3")):
        types = ".".join(pair)
        yield Core("ada_fp8", "MMA", "Ada Lovelace", f"m16n8k32.f32.{types}.f32", pair)
        yield Core("hopper_fp8", "WGMMA", "Hopper", f"m64n8k32.f32.{types}", pair)
    for pair in (*((x, x) for x in (*DTYPES, *PLACES)), ("e4m3", "e2m1"), ("e2m3", "e5m2")):
        types = ".".join(pair)
        kind = f"m64n8k32.kind::f8f6f4.f32.{types}"
        yield Core("blackwell", "TCGen05MMA", "Blackwell", kind, pair)
        kind = f"m128n8k32.kind::mxf8f6f4.block32.f32.{types}.ue8m0"
        yield Core("blackwell_mx", "TCGen05MMABlockScale", "Blackwell", kind, pair, "e8m0_t32")
    for block, scale, ours in (
        (32, "ue8m0", "e8m0"),
        (16, "ue8m0", "e8m0"),
        (16, "ue4m3", "e4m3fn"),
    ):
        kind = f"m128n8k64.kind::mxf4nvf4.block{block}.f32.e2m1.e2m1.{scale}"
        operation = ("blackwell_fp4", "TCGen05MMABlockScale", "Blackwell", kind)
        yield Core(*operation, ("e2m1", "e2m1"), f"{ours}_t{block}")


def operand(core, element, seed):
    """Blocks of codes of several kinds: all, few large ones, zeros; scales near and far, and tiny.

    A few rows have NaN and infinities.
    """
    suffix = "" if element in ("e5m2", *AMD_DTYPES) else "fn"
    fmt = block_format(f"{element}{suffix}_{core.scales or 'float32_t32'}")
    rng = np.random.default_rng(seed)
    kind, width = np.arange(ROWS)[:, None] % 5, fmt.element.width
    codes = rng.integers(0, 1 << width, (ROWS, LENGTH))
    small = rng.integers(0, 8, codes.shape) | codes & 1 << width - 1
    codes = np.where((kind == 1) & (rng.random(codes.shape) < 0.9), small, codes)
    codes[(kind >= 2) & (rng.random(codes.shape) < 0.6)] = 0
    shape = (ROWS, LENGTH // fmt.block)
    zeros = (kind >= 3) & (rng.random(shape) < 0.5)
    codes[zeros.repeat(fmt.block, axis=1)] &= 1 << width - 1
    # Neighbours that cancel, where rows of both operands have them.
    twins = np.where(seed, 1 << width - 1, 0)
    codes[:, 1::2] = np.where(kind == 4, codes[:, ::2] ^ twins, codes[:, 1::2])
    special = fmt.element.nan_codes | (fmt.element.infinite_codes != 0)
    codes = np.where(special[codes], codes & 3, codes)
    if special.any():
        few = (np.arange(ROWS)[:, None] % 25 == 7) & (rng.random(codes.shape) < 0.02)
        codes = np.where(few, rng.choice(np.flatnonzero(special), codes.shape), codes)
    scale = fmt.levels[0].scale
    if core.scales:
        top = scale.largest_code
        middle = rng.integers(0, top + 1, (ROWS, 1))
        tiny = rng.integers(top // 5, top // 3 + 1, (ROWS, 1))
        middle = np.where(kind % 2 == 1, tiny, middle)
        spread = rng.choice([1, 8, 40], (ROWS, 1))
        scales = np.clip(middle + rng.integers(-spread, spread + 1, shape), 0, top).astype(np.uint8)
    else:
        scales = np.full(shape, 0x3F800000, np.uint32)
    if core.as_dtype in ("bfloat16", "float32") and "e8m0" in core.scales:
        # Numbers without subnormal elements, which these dtypes would have with another exponent.
        codes = codes if core.by_value else np.where(codes & 0x7C, codes, codes & 0x80)
        scales = np.clip(scales, 50, 200).astype(np.uint8)
    return Blocks(fmt, (scales,), codes.astype(np.uint8).reshape(*shape, -1), (ROWS, LENGTH))


def tensors(core, element, x):
    """Elements and scales as MMA-Sim takes them."""
    codes = torch.from_numpy(x.codes.reshape(ROWS, LENGTH))
    scales = torch.from_numpy(x.scales[0])
    if core.as_dtype:
        values = torch.from_numpy(axs6.decode(x, dtype="float64"))
        return values.to(getattr(torch, core.as_dtype)), None
    if dtype := {**DTYPES, **AMD_DTYPES}.get(element):
        codes = codes.view(getattr(torch, dtype))
    elif core.name == "blackwell_fp4":
        codes = codes[:, ::2] << 4 | codes[:, 1::2]
    else:
        codes = codes << PLACES[element]
    dtype = torch.float8_e4m3fn if "e4m3" in core.scales else torch.float8_e8m0fnu
    return codes, scales.view(dtype) if core.scales else None


def expected(core, module, left, right):
    """Products of MMA-Sim, step by step, in FP32."""
    operation = getattr(module, core.operation)(core.arch, core.shape)
    (a, alpha), (b, beta) = (
        tensors(core, element, x) for element, x in zip(core.elements, (left, right), strict=True)
    )
    shape = (ROWS, ROWS)
    total = torch.zeros(shape, dtype=torch.float16 if core.half else torch.float32)

    def pairs(x, y, here):
        return x[:, None, here].expand(*shape, -1), y[None, :, here].expand(*shape, -1)

    steps = LENGTH // operation.k
    for step in range(steps):
        here, scales = (
            slice(step * count // steps, (step + 1) * count // steps)
            for count in (a.shape[1], 0 if alpha is None else alpha.shape[1])
        )
        of_blocks = [] if alpha is None else pairs(alpha, beta, scales)
        total = operation.dpa(*pairs(a, b, here), total, *of_blocks)
    return total.float()


def test_all_cores_are_compared():
    """All but the project's own, and what CUDA cores do with the results of a tensor core."""
    named = {name for name, how in ACCUMULATORS.items() if not how.scaled}
    assert {core.name for core in cores()} == named - {"fp32", "exact", "paper"}


@pytest.mark.parametrize("core", list(cores()), ids=lambda core: f"{core.name}-{core.shape}")
def test_products(core, peer):
    module = peer("mmasim", f"mmasim.{core.module}")
    left, right = (operand(core, x, seed) for seed, x in enumerate(core.elements))
    ours = axs6.matmul(left, right, core.name).view(np.uint32)
    theirs = expected(core, module, left, right).numpy()
    how = ACCUMULATORS[core.name]
    nan = how.nan
    if core.by_value:  # MMA-Sim leaves their NaN to the processor at hand
        theirs = np.where(np.isnan(theirs), np.uint32(nan).view(np.float32), theirs)
    theirs = theirs.view(np.uint32)
    lost = (ours == nan) & (theirs != nan)
    assert lost.any() == (core.shape in WITHOUT_NAN)
    assert ((ours != theirs) & ~lost).sum() == 0
    assert (ours == nan).any() or not left.format.element.has_nan
    if "e8m0" in core.scales and how.flush is None:
        magnitudes = ours & 0x7FFFFFFF
        assert ((magnitudes > 0) & (magnitudes < 1 << 23)).sum() > 50  # subnormal


FIELDS = {
    "MMA_T_FDPA": lambda op, k: (min(k, op.L_max), op.F, op.e_zero, op.rho),
    "MMA_ST_FDPA": lambda op, k: (min(k, op.L_max), op.F, op.e_zero, op.rho),
    "MMA_GST_FDPA": lambda op, k: (min(k, op.L_max), op.F, op.e_zero, op.rho),
    "MMA_TR_FDPA": lambda op, k: (min(k, op.L_max), op.F, op.F2, 1),
    "MMA_GTR_FDPA": lambda op, k: (min(k, op.L_max), op.F, op.F2, 2),
    "MMA_E_FDPA": lambda op, k: min(k, op.L_max),
    "MMA_FTZ_MUL_ADD": lambda op, k: op.P,
    "MMA_FMA": lambda op, k: 1,
}
"""What decides the bits of an operation of MMA-Sim, beside the type of operands."""


def described(how):
    """The same of an accumulator."""
    if how.sum_fraction is not None:
        return how.reduction, how.fraction, how.sum_fraction, how.groups
    if how.fraction is None:
        return how.reduction
    output = {"fp32": "RZ-FP32", "fp16": "RNE-FP16"}.get(how.output.name, "RZ-E8M13")
    return how.reduction, how.fraction, how.least, output


def test_every_instruction_has_a_name(peer):
    """All but those of FP64, whose results are wider."""
    named = {described(how) for how in ACCUMULATORS.values() if how.reduction}
    for module in ("nv_ptx", "amd"):
        found = peer("mmasim", f"mmasim.{module}")
        for operation, arch, shape in instructions(found):
            op = getattr(found, operation)(arch, shape)
            if op.a_type == torch.float64:
                continue
            arithmetic = op.arithmetic_op
            fields = FIELDS[type(arithmetic).__name__](arithmetic, op.k)
            assert fields in named, (arch, shape)


def instructions(module):
    """Classes of operations of MMA-Sim, with architectures and shapes that they have."""
    if module.__name__.endswith("amd"):
        from mmasim.amd.isa_mfma import arch_mfma_suffix as suffixes

        tables = {"MFMA": suffixes}
    else:
        from mmasim.nv_ptx import isa_mma, isa_tcgen05mma, isa_wgmma

        tables = {
            "MMA": isa_mma.mma_shape_and_type,
            "MMABlockScale": isa_mma.mma_block_scale_shape_and_type,
            "WGMMA": isa_wgmma.wgmma_shape_and_type,
            "TCGen05MMA": isa_tcgen05mma.tcgen05mma_shape_and_type,
            "TCGen05MMABlockScale": isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type,
        }
    for operation, archs in tables.items():
        for arch, shapes in archs.items():
            for shape in shapes:
                yield operation, arch, shape
