"""Report pages as one HTML file that needs nothing else."""

from importlib.resources import files

from axs6.synth.pages.document import Page, Picture
from axs6.synth.pages.markdown import slug
from axs6.synth.pages.pictures import inline
from axs6.tables import Table


def html(page: Page) -> str:
    """The page with its pictures inside, no scripts and no links to elsewhere.

    Its colours follow the reader's choice of light or dark. All text is escaped.

    Raises:
        ModuleNotFoundError: jinja2 is not installed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["slug"] = slug
    environment.filters["inline"] = lambda p: Markup(inline(p.svg, slug(p.title)))
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.tests["picture"] = lambda block: isinstance(block, Picture)
    source = files("axs6.synth.pages").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(source).render(page=page) + "\n"
