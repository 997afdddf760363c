"""Files for the figures of a command: those of `ResultFiles`, and pages in HTML and Markdown."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from axs6.commands.output import write_file, write_files
from axs6.commands.packages import need
from axs6.commands.results import ResultFiles

if TYPE_CHECKING:
    from axs6.synth.pages.document import Page


@dataclass(frozen=True)
class ReportFiles(ResultFiles):
    """A page, Markdown, and `ResultFiles` of the same figures: None for those not asked for."""

    html: Path | None = None
    markdown: Path | None = None

    def check(self, *others: Path | None, inputs: Iterable[Path] = ()) -> None:
        """As `ResultFiles.check`.

        Raises:
            ModuleNotFoundError: pages need a package that is not installed.
        """
        if self.html or self.markdown:
            need("matplotlib", "jinja2")
        super().check(*others, self.html, self.markdown, inputs=inputs)

    def write_pages(self, page: "Callable[[], Page]", out: Console) -> None:
        """Write the pages that are asked for.

        Args:
            page: makes the page.
            out: where files are named.
        """
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
