"""Test vectors as text: a file for each subject, a line for each case, a word for each field."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

ARROW: Final = "->"
"""Stands between the inputs and the outputs of a case."""


class WordKind(NamedTuple):
    """How a value becomes a word of a line, and a word a value."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _hexadecimal(values: Sequence[int]) -> str:
    return ",".join(f"{value:x}" for value in values)


def _decimal(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


WORD: Final = WordKind(str, str)
NUMBER: Final = WordKind(str, int)
NUMBERS: Final = WordKind(_decimal, lambda word: [int(x) for x in word.split(",")])
PATTERN: Final = WordKind(lambda value: f"{value:x}", lambda word: int(word, 16))
PATTERNS: Final = WordKind(_hexadecimal, lambda word: [int(x, 16) for x in word.split(",")])
BYTES: Final = WordKind(bytes.hex, bytes.fromhex)


class Case(NamedTuple):
    """Inputs by field, and a name that says what they test."""

    name: str
    inputs: dict[str, Any]


class Vector(NamedTuple):
    """A case with the outputs that are right, by field, and the line it has in its file."""

    line: int
    name: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """The subject of a file of vectors.

    Args:
        name: name of the file, without its suffix.
        title: what the cases show, in one line.
        inputs, outputs: the fields of a case after its name, in the order of a line.
        cases: gives the inputs, the same every time.
        exact: gives the outputs for inputs as keyword arguments, in the order of the fields, by
            the definitions of the format.
        golden: the same by the golden model.
        of: the format.
    """

    name: str
    title: str
    inputs: Mapping[str, WordKind]
    outputs: Mapping[str, WordKind]
    cases: Callable[[], Iterable[Case]]
    exact: Callable[..., tuple[Any, ...]]
    golden: Callable[..., tuple[Any, ...]]
    of: str = "AXS-6"

    @property
    def file_name(self) -> str:
        """Name of the file."""
        return f"{self.name}.txt"

    @property
    def head(self) -> list[str]:
        """The comments at the head of the file, the last of which names the fields."""
        fields = " ".join(["name", *self.inputs, ARROW, *self.outputs])
        return [
            f"# {self.of} test vectors: {self.title}.",
            "# docs/vectors.md explains the fields; python -m axs6.golden.vectors writes the file.",
            f"# {fields}",
        ]

    def vectors(self) -> Iterator[Vector]:
        """Every case with its outputs by definition."""
        for line, (name, inputs) in enumerate(self.cases(), len(self.head) + 1):
            outputs = dict(zip(self.outputs, self.exact(**inputs), strict=True))
            yield Vector(line, name, inputs, outputs)

    def write(self, vectors: Iterable[Vector]) -> str:
        """The text of the file."""
        lines = list(self.head)
        for _, name, inputs, outputs in vectors:
            before = [kind.write(inputs[field]) for field, kind in self.inputs.items()]
            after = [kind.write(outputs[field]) for field, kind in self.outputs.items()]
            lines.append(" ".join([name, *before, ARROW, *after]))
        return "\n".join(lines) + "\n"

    def read(self, text: str) -> list[Vector]:
        """The vectors in the text of a file.

        Raises:
            ValueError: a line does not have the fields; the message names the file and the line.
        """
        kinds = {**self.inputs, ARROW: WORD, **self.outputs}
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("#"):
                continue
            name, *words = line.split() or [""]
            if len(words) != len(kinds) or words[len(self.inputs)] != ARROW:
                raise ValueError(
                    f"{self.file_name}:{number}: needed are the fields {self.head[-1][2:]}, "
                    f"not {line[:60]!r}"
                )
            values = {}
            for (field, kind), word in zip(kinds.items(), words, strict=True):
                try:
                    values[field] = kind.read(word)
                except ValueError as error:
                    raise ValueError(f"{self.file_name}:{number}: {field}: {error}") from None
            inputs = {field: values[field] for field in self.inputs}
            outputs = {field: values[field] for field in self.outputs}
            found.append(Vector(number, name, inputs, outputs))
        return found

    def differences(self, vectors: Iterable[Vector]) -> Iterator[str]:
        """The fields in which the exact and the golden model differ, a line for each."""
        for line, name, inputs, outputs in vectors:
            for model, compute in (("exact", self.exact), ("golden", self.golden)):
                got = compute(**inputs)
                for (field, kind), value in zip(self.outputs.items(), got, strict=True):
                    if value != outputs[field]:
                        yield (
                            f"{self.file_name}:{line}: {name}: {field} is "
                            f"{kind.write(outputs[field])}, the {model} model gives "
                            f"{kind.write(value)}"
                        )
