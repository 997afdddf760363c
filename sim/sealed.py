"""JSON files with a digest of their content, so that a changed one is refused."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axs6.replacing import make_folder, replacing


@dataclass(frozen=True)
class SealedFile:
    """A file with entries by name, which is replaced whole.

    Args:
        path: of it; it need not exist. kind: of its entries and their layout, as the file says.
        command: that writes it, for messages. name: of the entries in the file.
    """

    path: Path
    kind: str
    command: str
    name: str

    def read(self) -> dict[str, Any]:
        """The entries; none if there is no file.

        Raises:
            ValueError: the file holds something else, or was changed after it was written.
            OSError: it cannot be read.
        """
        if not self.path.exists():
            return {}
        try:
            content = json.loads(self.path.read_text())
            entries = dict(content[self.name])
            if content["kind"] != self.kind:
                raise ValueError
            fits = content["digest"] == self._digest(entries)
        except (ValueError, KeyError, TypeError):
            raise self.unlike() from None
        if not fits:
            raise ValueError(
                f"{self.path} was changed after it was written: its digest differs: "
                "delete it, or name another file"
            )
        return entries

    def unlike(self) -> ValueError:
        """The error that the file is not one of this kind."""
        return ValueError(
            f"{self.path} is not a state of {self.command}: delete it, or name another file"
        )

    def write(self, entries: Mapping[str, Any]) -> None:
        """Replace the file.

        Raises:
            OSError: the file or its folder cannot be written; the message names it.
        """
        content = {"kind": self.kind, "digest": self._digest(entries), self.name: entries}
        make_folder(self.path.parent)
        with replacing(self.path) as file:
            file.write(json.dumps(content).encode())

    def _digest(self, entries: Mapping[str, Any]) -> str:
        text = json.dumps([self.kind, entries], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
