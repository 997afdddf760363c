"""`axs6 demo`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import RESULTS, with_options
from axs6.commands.packages import need

EXTRA = "demo"

UNITS = ("encoder", "decoder", "matmul")
MEASURED = ("encoder", "decoder", "dot")
"""Units whose area is shown; `dot` is one lane of the tile."""

BLOCK = 32
TILE: dict[str, Any] = {"rows": 2, "columns": 2}
"""A tile of 4 x 4 takes g++ half a minute."""


@with_options(results=RESULTS)
def run(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = Path(
        "axs6-demo"
    ),
    *,
    results: dict[str, Any],
) -> None:
    """Classify handwritten digits on simulated AXS-6 hardware and compare every bit.

    Trains a small classifier, encodes its weights and activations, multiplies and decodes them in
    the generated RTL, compares all of it with the golden model, and writes Verilog and areas.

    Example: axs6 demo -o axs6-demo
    """
    from axs6.commands.output import print_table, write_json
    from axs6.commands.results import ResultFiles

    need("sklearn")
    files = ResultFiles(**results)
    files.check(output / "demo.json")

    from axs6 import encode, matmul
    from axs6.demo import Hardware, train
    from axs6.sim.control import workers
    from axs6.sim.tile import Tile

    out = files.console()
    out.print("training a 64-32-10 classifier on scikit-learn's handwritten digits")
    classifier = train()
    out.print(f"  {len(classifier.images)} test images")
    out.print("running its layers in the RTL (the first run builds the simulations)")
    with workers(1) as pool:
        measuring = pool.submit(_hardware_files, output)
        hardware = Hardware(Tile(BLOCK, **TILE), lambda line: out.print(f"  {line}"))
        in_hardware, hardware_accuracy = classifier.classify(hardware.multiply)
        reports = measuring.result()
    reference, fp32_accuracy = classifier.classify(lambda x, w: x @ w.T)
    golden, golden_accuracy = classifier.classify(
        lambda x, w: matmul(encode(x, block=BLOCK), encode(w, block=BLOCK))
    )
    figures: dict[str, Any] = {
        "images": len(classifier.images),
        "block": BLOCK,
        "tile": hardware.tile.parameters,
        "accuracy": {
            "fp32": fp32_accuracy,
            "axs6_golden": golden_accuracy,
            "axs6_rtl": hardware_accuracy,
        },
        "outputs_equal": bool((in_hardware == golden).all()),
        "bits_compared": hardware.bits,
        "bits_different": hardware.mismatches,
        "cycles": hardware.cycles,
        "largest_output_difference_from_fp32": float(abs(in_hardware - reference).max()),
    }
    table = _table(figures)
    print_table(out, table)
    _show(out, figures)
    _show_areas(out, reports)
    figures["area"] = {unit: report.to_dict() for unit, report in reports.items()}
    write_json(str(output / "demo.json"), figures)
    files.write(figures, table)
    out.print(f"wrote {output}/demo.json, and the Verilog of {', '.join(MEASURED)} and matmul")
    if any(hardware.mismatches.values()) or not figures["outputs_equal"]:
        raise typer.Exit(1)


def _table(figures: dict[str, Any]) -> Any:
    from axs6.tables import Column, Table, words

    names = ("cycles", "bits_compared", "bits_different")
    columns = [Column(name, name.replace("_", " "), ",") for name in names]
    rows = [(unit, *(figures[name][unit] for name in names)) for unit in UNITS]
    return Table([words("unit"), *columns], rows)


def _show(out: Any, figures: dict[str, Any]) -> None:
    accuracy = figures["accuracy"]
    out.print(
        f"accuracy: FP32 {accuracy['fp32']:.2%}, AXS-6 golden model "
        f"{accuracy['axs6_golden']:.2%}, AXS-6 RTL {accuracy['axs6_rtl']:.2%}"
    )


def _hardware_files(folder: Path) -> dict[str, Any]:
    """Write the Verilog of the units, and return reports of areas, which the cache keeps."""
    from axs6.commands.output import write_generated
    from axs6.hw.verilog import generate
    from axs6.synth.sweep import sweep

    write_generated(folder, generate("matmul", block=BLOCK, **TILE))
    reports = {}
    for result in sweep(MEASURED, parameters={"block": BLOCK}, breakdown=False).results:
        if result.measured is None:
            raise RuntimeError(result.reason)
        write_generated(folder, result.measured.design)
        reports[result.point.unit] = result.measured.report
    return reports


def _show_areas(out: Any, reports: dict[str, Any]) -> None:
    from axs6.commands.output import print_table
    from axs6.tables import Column, table_of, words

    out.print("area of the Verilog (generic gates)")
    titles = {"gate_equivalents": "gate equivalents", "transistors": None, "flip_flops": "FFs"}
    columns = [Column(name, title or name, ",.0f") for name, title in titles.items()]
    rows = [{"unit": unit, **report.total.figures} for unit, report in reports.items()]
    print_table(out, table_of([words("unit"), *columns], rows))
