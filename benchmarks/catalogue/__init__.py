"""Every figure in README and docs that is kept in a file: its commands and what it depends on."""

from catalogue.areas import AREAS
from catalogue.language import LANGUAGE_MODELS
from catalogue.speeds import BENCHMARKS, SIMULATIONS, WAVEFORM
from catalogue.studies import CHECKS, STUDIES

FIGURES = {
    figure.name: figure
    for figure in (
        *BENCHMARKS,
        *SIMULATIONS,
        WAVEFORM,
        *AREAS,
        *CHECKS,
        *STUDIES,
        *LANGUAGE_MODELS,
    )
}
"""Every figure by its name."""
