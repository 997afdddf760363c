"""`axs6 study`."""

import typer

from axs6.commands.study_accumulators import accumulators
from axs6.commands.study_accuracy import accuracy
from axs6.commands.study_pareto import pareto
from axs6.commands.study_perplexity import perplexity
from axs6.commands.study_qsnr import qsnr
from axs6.commands.study_rounding import rounding
from axs6.commands.study_scales import scales
from axs6.commands.study_sensitivity import sensitivity
from axs6.commands.study_similarity import similarity
from axs6.commands.study_training import training

EXTRA = "study"

app = typer.Typer(
    help="Measure the effect of block formats on models, their training and random vectors, "
    "and the bias of stochastic rounding."
    "\n\nExample: axs6 study accuracy mlp",
    no_args_is_help=True,
)

app.command()(accumulators)
app.command()(scales)
app.command()(sensitivity)
app.command()(pareto)
app.command()(perplexity)
app.command()(similarity)
app.command()(accuracy)
app.command()(training)
app.command()(rounding)
app.command()(qsnr)


@app.callback()
def _group() -> None:
    pass
