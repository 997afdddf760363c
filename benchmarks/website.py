"""Hooks of MkDocs for the documentation site: `mkdocs.yml` names this file.

The site has the repository's paths, so that a link works on GitHub and in the site: the pages are
README, CONTRIBUTING, CHANGELOG and docs, and each file outside of docs that one of them links to.
Everything that is wrong is a warning, and `strict` makes the build fail for them.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

import pages
import reference
from catalogue import FIGURES
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from pygments.lexers import find_lexer_class_for_filename

log = get_plugin_logger("website")

OUTER = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages beside docs."""

SHOWN = (".md", ".svg", ".css", ".js")
"""Ends of the names of files that belong to the site, whether a page links to them or not."""

LINES = 400
"""Lines of a file that its page shows."""

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
HREF = re.compile(r'<a [^>]*href="([^"#]+)')


class FilePage(File):
    """A page that shows a file, or the names in a folder, to which another page links."""

    def is_documentation_page(self) -> bool:
        """Whatever the name ends with."""
        return True


def on_files(files: Files, config: Any) -> Files:
    """The pages and pictures by their paths in the repository, and the files they link to."""
    root = Path(config.config_file_path).parent
    found = Files([file for file in files if file.src_dir != config.docs_dir])
    for path in (*(root / name for name in OUTER), *sorted((root / "docs").rglob("*"))):
        if path.suffix in SHOWN and path.is_file():
            within = path.relative_to(root).as_posix()
            found.append(File(within, str(root), config.site_dir, config.use_directory_urls))
    for page in list(found.documentation_pages()):
        for link in LINK.findall(page.content_string):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page.src_uri), link))
            inside = ":" not in link and not target.startswith("..") and (root / target).exists()
            if inside and found.get_file_from_path(target) is None:
                found.append(_file_page(root, target, config))
    return found


def _file_page(root: Path, target: str, config: Any) -> FilePage:
    """The page of a file or folder of the repository."""
    made = FilePage(
        target,
        None,
        config.site_dir,
        config.use_directory_urls,
        dest_uri=f"source/{target}.html",
        inclusion=InclusionLevel.NOT_IN_NAV,
    )
    path = root / target
    if path.is_dir():
        lines, language = sorted(each.name + "/" * each.is_dir() for each in path.iterdir()), "text"
    else:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        lexer = find_lexer_class_for_filename(target)
        language = lexer.aliases[0] if lexer else "text"
    rest = [f"{len(lines) - LINES:,} more lines are in the file."] * (len(lines) > LINES)
    shown = [f"`````{language}", *lines[:LINES], "`````", "", *rest]
    made.content_string = "\n".join([f"# {target}", "", *shown, ""])
    return made


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page with the tables of the reference, and without the marks of figures."""
    if isinstance(page.file, FilePage):
        return markdown
    for problem in figure_problems(markdown):
        log.warning(f"{page.file.src_uri}: {problem}: run `make figures`")
    return reference.fill(pages.MARK.sub(r"\g<shown>", markdown))


def figure_problems(text: str) -> list[str]:
    """The figures of a page that are older than their sources or are not as they are kept."""
    found = []
    if pages.fill(text, FIGURES) != text:
        found.append("it shows other figures than those that are kept")
    for name in dict.fromkeys(mark["name"] for mark in pages.MARK.finditer(text)):
        changed = FIGURES[name].changed_sources()
        found += [f"the figure {name} is older than {', '.join(changed)}"] * bool(changed)
    return found


def on_env(env: Any, files: Files, **_: Any) -> Any:
    """Find the pages to which no other page links; MkDocs finds those without navigation."""
    shown = [file.page for file in files.documentation_pages() if file.page]
    linked = {
        target
        for page in shown
        for href in HREF.findall(page.content)
        for target in [posixpath.normpath(posixpath.join(posixpath.dirname(page.url), href))]
        if target != page.url
    }
    for page in shown:
        if not page.is_homepage and page.url not in linked:
            log.warning(f"{page.file.src_uri}: no other page links to it")
    return env
