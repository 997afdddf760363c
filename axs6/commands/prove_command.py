"""`axs6 prove`."""

from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import units
from axs6.commands.options import RESULTS, UNIT_OPTIONS, with_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axs6.proof.components import ComponentProof
    from axs6.proof.prove import Claim, UnitProof

EXTRA = "proof"

TARGETS = ("generic", "sky130")
"""Targets whose netlists are proved: those of gates."""


def _known(context: typer.Context, unit: str) -> str:
    if context.resilient_parsing:
        return unit
    from axs6.hw.registry import find
    from axs6.proof.components import COMPONENTS

    return unit if unit in COMPONENTS else find(unit).name


@with_options(parameters=UNIT_OPTIONS, results=RESULTS)
def run(
    unit: Annotated[
        str,
        typer.Argument(
            help="The unit; `axs6 list` shows them. Or what units have inside: fp32_add, "
            "fp32_convert, fp32_divide, fp32_multiply, fp32_quotient, terms_align, "
            "terms_join, terms_multiply, terms_round.",
            callback=_known,
            metavar="UNIT",
            autocompletion=units,
        ),
    ],
    *,
    parameters: dict[str, Any],
    target: Annotated[
        str | None,
        typer.Option(
            help="Also prove the netlists of synthesis for this target: generic or sky130.",
            autocompletion=lambda: TARGETS,
        ),
    ] = None,
    liberty: Annotated[
        Path | None, typer.Option(help="Cell library to map to, in place of a target.")
    ] = None,
    optimise: Annotated[
        str | None,
        typer.Option(help="Only netlists for area or for speed.", show_default="both"),
    ] = None,
    adder_cells: Annotated[
        bool, typer.Option("--adder-cells", help="Only netlists with adder cells.")
    ] = False,
    netlist: Annotated[
        Path | None,
        typer.Option(
            help="Prove that the Verilog in this file is the unit, in place of netlists of "
            "synthesis; --target sky130 or --liberty gives its cells."
        ),
    ] = None,
    truncations: Annotated[
        bool,
        typer.Option(
            "--truncations",
            help="In place of claims, list where the RTL drops the highest bits of a result, and "
            "whether they are ever needed.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(help="Time limit of each tool and each question, in seconds.")
    ] = 600,
    results: dict[str, Any],
) -> None:
    """Prove that a unit is right for all inputs.

    The RTL without registers is compared with the definitions of its formats, in integers. With
    --stages, the RTL is shown to be the same function behind a queue, for all stalls. Netlists of
    --target, --liberty or --netlist are shown to be equal. Each claim is proved, refuted by an
    input that is replayed in the batch simulator, or open. The exit status is 1 unless all are
    proved.

    With --truncations, the exit status is 1 if bits are lost for no reason that the source gives.

    Conversions and divisions of FP32 are those of a --format, and terms those of an --accumulator.

    Example: axs6 prove block_dot --format mxfp4 --target sky130
    """
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.commands.truncations import print_truncations
    from axs6.proof.components import proof_of
    from axs6.proof.prove import Outcome
    from axs6.tables import Column, table_of, words

    need("pysat", "bitwuzla")
    files = ResultFiles(**results)
    files.check()
    if truncations:
        no: dict[str, Any] = {
            "target": target,
            "liberty": liberty,
            "optimise": optimise,
            "netlist": netlist,
        }
        no |= {"adder-cells": adder_cells, "stages": parameters.get("stages")}
        print_truncations(unit, parameters, timeout, files, no)
        return
    if target not in (None, *TARGETS):
        raise ValueError(f"target must be {' or '.join(TARGETS)} here, not {target!r}")
    out = files.console()
    verilog = netlist.read_text() if netlist else ""
    cells = _cells(target, liberty) if netlist else None
    proof = proof_of(unit, parameters, timeout)
    others = [proof.rtl()]
    if netlist is not None:
        others.append(proof.netlist(netlist.name, verilog, cells))
    elif target or liberty:
        others += _mapped(proof, target, liberty, optimise, adder_cells)
    alone = netlist is None and not (target or liberty or parameters.get("stages"))
    specification = iter(()) if proof.unspecified and not alone else proof.specification()
    found = []
    for claim in chain(specification, *others):
        found.append(claim)
        out.print(_line(claim), highlight=False, soft_wrap=True)
        if claim.item is not None:
            numbers = ", ".join(f"{name} = {x}" for name, x in claim.to_dict()["item"].items())
            out.print(f"         shown by {numbers}", highlight=False)
    if proof.unspecified:
        out.print(f"         not held to its definition: {proof.unspecified}; see axs6 regress")
    claims = [claim.to_dict() for claim in found]
    columns = [words(name) for name in ("outcome", "design", "text", "reason")]
    more = (Column("seconds", "seconds", ".1f"), Column("item", None))
    files.write({"unit": unit, "claims": claims}, table_of([*columns, *more], claims))
    if any(claim.outcome is not Outcome.PROVED for claim in found):
        raise typer.Exit(1)


def _line(claim: "Claim") -> str:
    said = f"{claim.outcome:8} {claim.design}: {claim.text}"
    return f"{said} ({claim.reason}, {claim.seconds:.1f} s)"


def _cells(target: str | None, liberty: Path | None) -> str | None:
    """The Liberty text of the cells of a user's netlist."""
    from axs6.synth.netlist import compact_library

    if liberty is not None:
        return liberty.read_text()
    return compact_library() if target == "sky130" else None


def _mapped(
    proof: "UnitProof | ComponentProof",
    target: str | None,
    liberty: Path | None,
    optimise: str | None,
    adder_cells: bool,
) -> "list[Iterator[Claim]]":
    """The netlists of a target or library: for both goals, with and without adder cells."""
    goals = [optimise] if optimise else ["area", "speed"]
    with_cells = [True] if adder_cells else [False, True]
    if not liberty and target == "generic":
        with_cells = [adder_cells]
    library: dict[str, Any] = {"liberty": liberty} if liberty else {"target": target}
    return [
        proof.mapped(**library, optimise=goal, adder_cells=cells)
        for cells, goal in product(with_cells, goals)
    ]
