"""Report pages: a sweep as tables and pictures, in HTML or Markdown."""

from axs6.synth.pages.content import page
from axs6.synth.pages.html import html
from axs6.synth.pages.markdown import markdown

__all__ = ["html", "markdown", "page"]
