"""Files for the figures of a command: JSON, HTML and Markdown."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from axs6.commands.output import check_writable, json_path, write_file, write_files, write_json
from axs6.commands.packages import need

if TYPE_CHECKING:
    from axs6.synth.pages.document import Page


@dataclass(frozen=True)
class ReportFiles:
    """A page, Markdown and JSON of the same figures: the files, None for those not asked for.

    `json` is "-" for stdout.
    """

    html: Path | None = None
    markdown: Path | None = None
    json: str | None = None

    def check(self, *others: Path | None, inputs: Iterable[Path] = ()) -> None:
        """Raise an error for a package that is missing, or a file that is not to be written.

        Args:
            others: more files that the command writes.
            inputs: files that it reads.

        Raises:
            ModuleNotFoundError: pages need a package that is not installed.
            OSError, ValueError: as `axs6.commands.output.check_writable`.
        """
        if self.html or self.markdown:
            need("matplotlib", "jinja2")
        check_writable(self.html, self.markdown, json_path(self.json), *others, inputs=inputs)

    def write(self, figures: Any, page: "Callable[[], Page]", out: Console) -> None:
        """Write what is asked for.

        Args:
            figures: for JSON.
            page: makes the page.
            out: where files are named.
        """
        write_json(self.json, figures)
        if not (self.html or self.markdown):
            return
        from axs6.synth import pages

        document = page()
        if self.html:
            write_file(self.html, pages.html(document))
            out.print(f"wrote {self.html}")
        if self.markdown:
            files = pages.markdown(document, self.markdown.name)
            write_files(self.markdown.parent, files)
            pictures = f" with {len(files) - 1} SVG beside it" if len(files) > 1 else ""
            out.print(f"wrote {self.markdown}{pictures}")
