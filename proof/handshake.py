"""The handshake of a unit without registers."""

from axs6.proof.aig import Graph
from axs6.proof.errors import NotShownError


def show_passed(graph: Graph) -> None:
    """Show that `ready` and `valid` pass through.

    Raises:
        NotShownError: one does not.
    """
    for out, name in (("i__ready[0]", "o__ready[0]"), ("o__valid[0]", "i__valid[0]")):
        if graph.outputs[out] != graph.inputs[name]:
            raise NotShownError(f"{out.partition('[')[0]} is not {name.partition('[')[0]}")
