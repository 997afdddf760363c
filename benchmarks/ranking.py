"""Which formats the perplexity of a language model tells apart: neighbours, window by window.

Run with `python benchmarks/ranking.py FILE`, with the file of windows of `axs6 study perplexity
smollm2`, whose named formats it ranks. Windows differ much more than formats do on one window, so
each format is compared with the one above it on the same windows.
"""

import json
import sys
from pathlib import Path

from axs6.golden.formats import CATALOG
from axs6.studies.language.models import load
from axs6.studies.language.perplexity import row_of, run_windows
from axs6.studies.language.request import TOKENS, WINDOW, Setting, model_path
from axs6.studies.language.tasks import KeptResults, TaskOptions
from axs6.studies.language.texts import documentation, windows
from axs6.studies.language.windows import Window

MODEL = "smollm2"

APART = 2
"""Standard errors by which two formats must differ, or their order may be chance."""


def main() -> None:
    origin = model_path(MODEL)
    model = load(*origin)
    file = Path(sys.argv[1])
    kept = {json.loads(line)["setting"] for line in file.read_text().splitlines()}
    settings = [Setting(), *(x for x in map(Setting.of, CATALOG) if str(x) in kept)]
    options = TaskOptions(KeptResults(file, Window))
    tokens = windows(model, documentation(), TOKENS, WINDOW)
    found = run_windows(origin, model, tokens, settings, options)
    ranked = sorted(settings, key=lambda each: row_of(each, found[each], found[each]).perplexity)
    print(f"{MODEL}, {len(tokens)} windows of {WINDOW} tokens; each format over the one above it")
    print(f"{'format':10}  perplexity   ratio      +-  errors apart")
    for setting, above in zip(ranked, [None, *ranked], strict=False):
        row = row_of(setting, found[setting], found[above or setting])
        line = f"{setting!s:10} {row.perplexity:11,.4g}"
        if above is not None and row.ratio_error:
            apart = (row.ratio - 1) / row.ratio_error
            line += f" {row.ratio:7.4g} {row.ratio_error:7.2g} {apart:13.1f}"
            line += " may be chance" * (apart < APART)
        print(line)


if __name__ == "__main__":
    main()
