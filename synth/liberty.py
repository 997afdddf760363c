"""A reader of Liberty files: the groups and attributes of a cell library, as nested objects.

The syntax is that of the Liberty user guide: `group (arguments) { ... }`, `name : value ;` and
`name (values) ;`. What the attributes mean is for `axs6.synth.cells` to say.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from axs6.synth.errors import SynthesisError

FEMTOFARADS = {"pf": 1e3, "ff": 1.0, "nf": 1e6}
"""Units of capacitance."""

_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"((?:[^"\\]|\\.)*)"|([{}();:,])|([^\s{}();:,"\\]+)', re.S)


@dataclass
class LibertyGroup:
    """A group: its kind (`cell`, `pin`, `timing`), its arguments and what it holds.

    `attributes` maps a name to its values, as texts without quotes; of several with the same name
    the last counts. `within` says for messages what it lies in: the file and the groups around it.
    """

    kind: str
    arguments: tuple[str, ...]
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: list["LibertyGroup"] = field(default_factory=list)
    within: str = ""

    @property
    def place(self) -> str:
        """The group for messages: the file, the groups around it and itself."""
        if self.kind == "library":
            return self.within
        return " ".join([f"{self.within}, {self.kind}", *self.arguments])

    @property
    def name(self) -> str:
        """The first argument.

        Raises:
            SynthesisError: there is none.
        """
        if not self.arguments:
            raise SynthesisError(
                f"{self.within}: each {self.kind} must have a name and one has none"
            )
        return self.arguments[0]

    def all(self, kind: str) -> Iterator["LibertyGroup"]:
        """Yield the groups of one kind, in the order of the file."""
        return (group for group in self.groups if group.kind == kind)

    def text(self, name: str, default: str = "") -> str:
        """Return the first value of an attribute, or `default` where there is none."""
        return self.attributes.get(name, (default,))[0]

    def number(self, name: str, default: float = 0.0) -> float:
        """Return an attribute as a number, or `default` where there is none.

        Raises:
            SynthesisError: it is there and is no finite number.
        """
        text = self.text(name, str(default))
        try:
            return finite(text)
        except ValueError:
            raise SynthesisError(f"{self.place}: {name} must be a number, not {text!r}") from None

    def one_of(self, name: str, choices: Sequence[str], default: str = "") -> str:
        """Return an attribute that is one of `choices`, or `default` where there is none.

        Raises:
            SynthesisError: it is none of them.
        """
        text = self.text(name, default)
        if text not in choices:
            raise SynthesisError(
                f"{self.place}: {name} must be one of {', '.join(choices)}, "
                f"not {repr(text) if text else 'nothing'}"
            )
        return text


def finite(text: str) -> float:
    """Return the number that a text is.

    Raises:
        ValueError: it is none, or is not finite.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def scale(
    library: LibertyGroup, name: str, units: Mapping[str, float], source: str, default: str = ""
) -> float:
    """Return what a unit such as `1ns` or `(1, pf)` stands for, in the unit whose factor is 1.

    Args:
        library: group that has it as attribute `name`, or else it is `default`.
        name: of the attribute.
        units: factors of the units that are known, by names of two letters.
        source: the library, for messages.
        default: a unit, or nothing where the attribute is needed.

    Raises:
        SynthesisError: the attribute is not a number and one of `units`.
    """
    text = "".join(library.attributes.get(name, (default,))).lower().replace(" ", "")
    try:
        return float(text[:-2]) * units[text[-2:]]
    except (ValueError, KeyError):
        raise SynthesisError(
            f"{source} must give {name} as a number and one of {', '.join(units)}, "
            f"not {text or 'nothing'}"
        ) from None


def read_library(path: Path) -> tuple[str, str]:
    """Return the text of a Liberty file, and what messages call it.

    Raises:
        SynthesisError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace"), f"library {path}"
    except OSError as error:
        raise SynthesisError(f"cannot read the library {path}: {error.strerror}") from None


def parse(text: str, source: str) -> LibertyGroup:
    """Read the text of a Liberty file into its `library` group.

    Args:
        text: what the file holds.
        source: the file, for messages.

    Raises:
        SynthesisError: the text is not of this syntax or ends early.
    """
    tokens = _tokens(text)
    kind, arguments = next(tokens, ("", "")), []
    for token in tokens:
        if token == ("{", ""):
            break
        if not token[0]:
            arguments.append(token[1])
    library = LibertyGroup(kind[1], tuple(arguments), within=source)
    if library.kind != "library" or not _fill(library, tokens):
        raise SynthesisError(f"{source} must be a Liberty file and is not, or ends early")
    return library


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield (punctuation, "") or ("", word or string)."""
    for match in _TOKEN.finditer(text):
        quoted, mark, word = match.groups()
        if mark:
            yield mark, ""
        elif word is not None:
            yield "", word
        elif quoted is not None:
            yield "", quoted.replace("\\\n", " ")


def _fill(top: LibertyGroup, tokens: Iterator[tuple[str, str]]) -> bool:
    """Read statements into a group up to its closing brace; say whether that came."""
    open_groups, words, colon = [top], [], False
    for mark, word in tokens:
        group = open_groups[-1]
        if not mark:
            words.append(word)
        elif mark == ":":
            colon = True
        elif mark == "{" and words:
            inner = LibertyGroup(words[0], tuple(words[1:]), within=group.place)
            group.groups.append(inner)
            open_groups.append(inner)
            words = []
        elif mark in ";}":
            if words:
                rest = (" ".join(words[1:]),) if colon else tuple(words[1:])
                group.attributes[words[0]] = rest or ("",)
            words, colon = [], False
            if mark == "}":
                open_groups.pop()
                if not open_groups:
                    return True
    return False
