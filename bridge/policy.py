"""A policy: which format, accumulator and treatment of NaN each layer of a model has.

As data, and so in a TOML file, a policy has settings for the model, and rules for its layers:

    format = "mxfp8_e4m3"
    gradients = "mxfp8_e5m2"

    [[layers]]
    position = "first"
    format = "fp32"

    [[layers]]
    name = "blocks.*.mlp"
    weights = "mxfp4"
"""

import json
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Self

from torch import nn

from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import BlockFormat, name_of
from axs6.torch.options import FP32, Names

KEYS: Final = tuple(Names.__annotations__)
"""Settings of a layer in a policy."""

OPERANDS: Final = ("weights", "activations", "block", "choice")
"""Settings that a rule with another format resets."""

ALONE: Final = {"format": FP32}

SELECTORS: Final = ("name", "type", "position")
POSITIONS: Final = ("first", "last")

Settings = Mapping[str, Any]
Choice = Callable[[str, nn.Module], str | BlockFormat | Settings | None]


@dataclass(frozen=True)
class LayerRule:
    """Settings for some layers of a model.

    Args:
        selector: "name", "type" or "position".
        value: a name as in `named_modules`, with the wildcards of `fnmatch`; a class or its name,
            subclasses included; or "first" or "last", of the layers with products.
        settings: the settings there.

    Raises:
        TypeError: a name is no string, or a type neither a class nor its name.
        ValueError: a key or position is unknown.
    """

    selector: str
    value: Any
    settings: Settings

    def __post_init__(self) -> None:
        check_keys(self.settings, KEYS, f"the rule {self}")
        kinds = (str, type) if self.selector == "type" else (str,)
        if not isinstance(self.value, kinds):
            needed = "a class or its name" if self.selector == "type" else "a string"
            raise TypeError(f"{self.selector} must be {needed}, not {self.value!r}")
        if self.selector == "position" and self.value not in POSITIONS:
            raise ValueError(f"position must be first or last, not {self.value!r}")

    @classmethod
    def of(cls, entry: Settings) -> Self:
        """A rule of one entry of `layers`."""
        given = [key for key in SELECTORS if key in entry]
        if len(given) != 1:
            raise ValueError(f"a rule must have one of name, type and position, not {dict(entry)}")
        settings = {key: value for key, value in entry.items() if key != given[0]}
        return cls(given[0], entry[given[0]], settings)

    def __str__(self) -> str:
        value = self.value.__name__ if isinstance(self.value, type) else self.value
        return f"{self.selector} = {value!r}"

    def takes(self, name: str, module: nn.Module, layers: Sequence[str]) -> bool:
        """Whether it matches a module; `layers` are the names of the modules with products."""
        if self.selector == "name":
            return fnmatchcase(name, self.value)
        if self.selector == "position":
            return bool(layers) and name == layers[-1 if self.value == "last" else 0]
        if isinstance(self.value, type):
            return isinstance(module, self.value)
        return any(base.__name__ == self.value for base in type(module).__mro__)


@dataclass(frozen=True)
class Policy:
    """Settings for a model, and rules for its layers.

    The first matching rule applies to a module and everything in it; a rule that matches a module
    inside overrides it there. A module left in FP32 is left with everything in it.

    Args:
        settings: format, weights, activations, gradients, gradient_rounding, gradient_rotation,
            accumulator, block, choice and nonfinite, as of `convert`; "fp32" as format leaves
            layers alone.
        rules: for layers.

    Raises:
        ValueError: a key is unknown.
    """

    settings: Settings
    rules: tuple[LayerRule, ...] = ()

    def __post_init__(self) -> None:
        check_keys(self.settings, KEYS, "a policy")
        for rule in self.rules:
            if not isinstance(rule, LayerRule):
                raise TypeError(
                    f"rules of a policy must be LayerRule objects, not {rule!r}: see from_dict"
                )

    @classmethod
    def from_dict(cls, entries: Settings) -> Self:
        """A policy of plain data, as `to_dict` gives it.

        Raises:
            TypeError: it is no mapping, or its layers are none.
            ValueError: a key is unknown.
        """
        if not isinstance(entries, Mapping):
            raise TypeError(f"policy must be a mapping, not {type(entries).__name__}")
        check_keys(entries, (*KEYS, "layers"), "a policy")
        layers = entries.get("layers", ())
        a_list = isinstance(layers, Sequence) and not isinstance(layers, str)
        if not a_list or not all(isinstance(x, Mapping) for x in layers):
            raise TypeError(f"layers of a policy must be a list of tables, not {layers!r}")
        settings = {key: value for key, value in entries.items() if key != "layers"}
        return cls(settings, tuple(map(LayerRule.of, layers)))

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data: strings and numbers."""
        rules = [{rule.selector: rule.value, **rule.settings} for rule in self.rules]
        found: dict[str, Any] = _plain(self.settings)
        return found | ({"layers": [_plain(rule) for rule in rules]} if rules else {})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The policy of a TOML file.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no TOML, or no policy; the message names the file.
        """
        try:
            return cls.from_dict(tomllib.loads(Path(path).read_text()))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None

    def to_toml(self) -> str:
        """The text of a TOML file with the policy."""
        entries = self.to_dict()
        tables = [("", entries), *(("[[layers]]", rule) for rule in entries.pop("layers", ()))]
        return "\n".join(
            "\n".join(
                [title] * bool(title) + [f"{key} = {json.dumps(x)}" for key, x in rows.items()]
            )
            + "\n"
            for title, rows in tables
        )


def plan(
    model: nn.Module,
    base: Settings,
    exclude: Iterable[str | type[nn.Module]],
    policy: "Policy | Settings | Choice | None",
    layers: tuple[type[nn.Module], ...],
    multiplies: Callable[[nn.Module], bool],
) -> dict[str, Settings | None]:
    """Settings for each module of a model, by its name; None for FP32.

    Args:
        model: the model.
        base: default settings.
        exclude: names and classes that are left in FP32, whatever the policy.
        policy: a Policy, its plain data, or a function that takes a name and a module, and returns
            a format ("fp32" to leave the module alone), several settings, or None to inherit the
            settings of the parent.
        layers: classes of layers with products.
        multiplies: whether a module may compute products itself.

    A rule that changes nothing gives a warning.

    Raises:
        TypeError, ValueError: an argument is refused, or a rule names no module.
    """
    if isinstance(exclude, str | type):
        raise ValueError(f"exclude must be a list of names and classes, not {exclude!r}")
    excluded = [LayerRule("type" if isinstance(x, type) else "name", x, ALONE) for x in exclude]
    if policy is None:
        policy = Policy({})
    elif isinstance(policy, Mapping):
        policy = Policy.from_dict(policy)
    elif not (isinstance(policy, Policy) or callable(policy)):
        kind = type(policy).__name__
        raise TypeError(f"policy must be a Policy, a mapping or a function, not {kind}")
    given = policy.rules if isinstance(policy, Policy) else ()
    modules = dict(model.named_modules())
    named = [name for name, module in modules.items() if isinstance(module, layers)]
    rules = (*excluded, *given)
    for rule in rules:
        if not any(rule.takes(name, module, named) for name, module in modules.items()):
            raise ValueError(f"the model has no module with {rule}")

    def chosen(name: str, module: nn.Module, rules: Iterable[LayerRule]) -> Any:
        for rule in rules:
            if rule.takes(name, module, named):
                return rule.settings
        return None if isinstance(policy, Policy) else policy(name, module)

    def resolved(rules: Iterable[LayerRule]) -> dict[str, Settings | None]:
        found: dict[str, Settings | None] = {}
        for name, module in modules.items():
            around = found[name.rpartition(".")[0]] if name else base
            if not name and isinstance(policy, Policy):
                around = merged(base, policy.settings)
            found[name] = (
                None if around is None else _inside(around, chosen(name, module, rules), name)
            )
        return found

    def settled(rules: Iterable[LayerRule]) -> list[Settings | None]:
        """Settings for the modules that may compute products."""
        found = resolved(rules)
        settings = [found[name] for name in modules if multiplies(modules[name])]
        return [each and _given(each) for each in settings]

    for i, rule in enumerate(rules):
        before, others = rules[:i], rules[:i] + rules[i + 1 :]
        alone = settled(before) == settled((*before, rule))
        if alone and settled(others) == settled(rules):
            text = f"the rule {rule} changes nothing: no product is computed in another way for it"
            warnings.warn(text, stacklevel=3)
    return resolved(rules)


def _given(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if value is not None}


def _inside(around: Settings, answer: Any, name: str) -> Settings | None:
    """Settings for a module: the settings of its parent with changes."""
    settings = {"format": answer} if isinstance(answer, str | BlockFormat) else answer
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        kind = type(settings).__name__
        raise TypeError(f"policy of {name!r} must be a format or a mapping, not {kind}")
    check_keys(settings, KEYS, f"the policy of {name!r}")
    here = merged(around, settings)
    return None if here.get("format") == FP32 else here


def merged(settings: Settings, changes: Settings) -> Settings:
    """Settings with changes; another format resets formats and blocks of operands."""
    kept = {
        key: value
        for key, value in settings.items()
        if not ("format" in changes and key in OPERANDS)
    }
    return {**kept, **changes}


def check_keys(settings: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise ValueError unless all keys are known; `what` has them."""
    for key in settings:
        if key not in known:
            raise ValueError(f"{what} must have keys of {', '.join(known)}, not {key!r}")


def _plain(settings: Settings) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, BlockFormat):
            return name_of(value)
        if isinstance(value, type):
            return value.__name__
        return str(value) if isinstance(value, Accumulator) else value

    return {key: plain(value) for key, value in settings.items() if value is not None}
