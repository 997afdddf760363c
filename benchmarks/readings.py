"""How the output of a figure's commands becomes what its file keeps."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from figure import CommandRun

from axs6.studies.comparison.columns import GROUPS, Column

Reading = Callable[[Sequence[CommandRun]], dict[str, Any]]


def printed(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """All that the commands printed."""
    return {"output": [run.lines for run in runs]}


def pareto(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Output of the Pareto study, and its figures for the text of README."""
    (run,) = runs
    counts = {name: len(run.json[name]) for name in ("measurements", "missing", "unbuildable")}
    values = {"measured": counts["measurements"], "formats": sum(counts.values())}
    found = {each["format"]: each for each in run.json["measurements"]}
    for name in ("axs6", "mx6", "mx9"):
        values[f"{name}_db"] = round(found[name]["qsnr_db"], 1)
        values[f"{name}_cost"] = round(found[name]["cost"], 2)
    on_line = "axs6" in run.json["frontier"]
    return {
        **printed(runs),
        "values": {**values, "axs6_is": "on the line" if on_line else "below the line"},
    }


def proofs(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """The seconds in which designs are proved: a row for each format."""
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        _, _, unit, *rest = run.command.split()
        fmt = rest[1] if rest[:1] == ["--format"] else "axs6"
        for claim in run.json["claims"]:
            assert claim["outcome"] == "proved"
            column = unit if claim["design"] == "RTL" else claim["design"]
            row = found.setdefault(fmt, {})
            row[column] = row.get(column, 0.0) + claim["seconds"]
    columns = list(dict.fromkeys(column for row in found.values() for column in row))
    rows = [
        [fmt, *(f"{each[x]:.1f} s" if x in each else "-" for x in columns)]
        for fmt, each in found.items()
    ]
    return {"table": {"columns": ["format", *columns], "rows": rows}}


def verification(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """The checks of `axs6 verify`: a row for each unit, and one for what is enumerated."""
    (run,) = runs
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for check in run.json:
        row = found[check["unit"] or "enumerated"]
        row[check["kind"]] += 1
        row["passed"] += check["passed"]
        row["checks"] += 1
        row["seconds"] += check["seconds"]
        row.update(check["counts"])
    rows = []
    for unit, row in found.items():
        unlike = row["killed"] + row["different"] + row["open"]
        score = f"{100 * row['killed'] / unlike:.2f} %" if unlike else "-"
        counts = (f"{row[name]:,}" if row[name] else "-" for name in _COUNTS)
        passed = f"{row['passed']} of {row['checks']}"
        rows.append([unit, passed, *counts, score, f"{row['seconds']:,.0f} s"])
    return {
        "table": {"columns": ["unit", "checks passed", *_COUNTS, "score", "time"], "rows": rows}
    }


_COUNTS = ("claims proved", "cases equal", "killed", "equal", "different", "open")


def between(*passages: tuple[str, str]) -> Reading:
    """Passages of what one command printed, with "..." in place of all else.

    Args:
        passages: of each the beginnings of its first line, and of the first one after it; an empty
            text stands for the beginning or the end of the output.
    """

    def read(runs: Sequence[CommandRun]) -> dict[str, Any]:
        (run,) = runs
        kept: list[str] = []
        end = 0
        for first, after in passages:
            start = _find(run.lines, first, end)
            if start > end:
                kept.append("...")
            end = _find(run.lines, after, start + 1) if after else len(run.lines)
            kept += run.lines[start:end]
        if any(run.lines[end:]):
            kept.append("...")
        while not kept[-1]:
            kept.pop()
        return {"output": [kept]}

    return read


def _find(lines: Sequence[str], beginning: str, start: int) -> int:
    for index in range(start, len(lines)):
        if lines[index].lstrip().startswith(beginning):
            return index
    raise RuntimeError(f"a line that begins with {beginning!r} must be printed")


def block_dot(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Figures of the block dot product in all its forms."""
    gates, plain, fast, adders = (run.json[0] for run in runs)
    values = {
        "gate_equivalents": round(gates["total"]["figures"]["gate_equivalents"]),
        "area": round(plain["total"]["figures"]["area"]),
        "fast_area": round(fast["total"]["figures"]["area"]),
        "adder_area": round(adders["total"]["figures"]["area"]),
        "delay": round(plain["timing"]["delay_ps"]),
        "fast_delay": round(fast["timing"]["delay_ps"]),
        "adder_delay": round(adders["timing"]["delay_ps"]),
    }
    labels = [
        ("gate equivalents", "gate_equivalents", 0),
        ("area, µm²", "area", 1),
        ("delay, ps", "delay", 1),
        ("area, mapped for speed, µm²", "fast_area", 2),
        ("delay, mapped for speed, ps", "fast_delay", 2),
        ("area, with adder cells, µm²", "adder_area", 3),
        ("delay, with adder cells, ps", "adder_delay", 3),
    ]
    commands = [f"`{run.command}`" for run in runs]
    rows = [[label, values[name], commands[index]] for label, name, index in labels]
    return {"values": values, "table": {"columns": ["figure", "value", "command"], "rows": rows}}


def libraries(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Areas and delays with the compact library beside those with the full one."""
    columns = ["", "area, µm²", "full library", "delay, ps", "full library"]
    rows = []
    for pair in zip(runs[::2], runs[1::2], strict=True):
        found = [run.json[0] for run in pair]
        areas = [round(each["total"]["figures"]["area"]) for each in found]
        delays = [round(each["timing"]["delay_ps"]) for each in found]
        rows.append([pair[0].command.split()[2], *areas, *delays])
    return {"table": {"columns": columns, "rows": rows}}


def line(figure: str, axis: str) -> Reading:
    """The straight line through a sweep's points: where it begins, its slope, and what is off."""

    def read(runs: Sequence[CommandRun]) -> dict[str, Any]:
        (found,) = (
            each
            for each in runs[0].json["growth"]
            if (each["figure"], each["axis"]) == (figure, axis)
        )
        values = {
            "intercept": round(found["intercept"]),
            "slope": round(found["slope"]),
            "off_percent": round(100 * found["deviation"], 2),
        }
        return {"values": values}

    return read


def stages(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Area, registers and clock over stages."""
    rows = []
    for point in runs[0].json["points"]:
        figures = point["figures"]
        clock = point["timing"]["fmax_mhz"]
        rows.append(
            [
                point["parameters"]["stages"],
                round(figures["area"]),
                f"{100 * figures['sequential_share']:.1f} %",
                figures["flip_flops"],
                "-" if clock is None else round(clock, 1),
            ]
        )
    columns = ["stages", "area µm²", "of it flip-flops", "flip-flops", "Fmax MHz"]
    return {"table": {"columns": columns, "rows": rows}}


def formats(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Areas of the units of block formats: dot product, encoder, decoder, and with adder cells."""
    dots, encoders, decoders, adders = (
        {
            point["parameters"]["format"]: (point["parameters"]["block"], point["figures"]["area"])
            for point in run.json["points"]
        }
        for run in runs
    )
    rows = []
    for name, (lanes, _) in dots.items():
        found = (dots, adders, encoders, decoders)
        areas = [round(each[name][1]) if name in each else "-" for each in found]
        rows.append([name, lanes, *areas, f"`axs6 area block_dot --target sky130 --format {name}`"])
    columns = ["format", "lanes", "block_dot", "with adder cells", "encoder", "decoder", "command"]
    return {"table": {"columns": columns, "rows": rows}}


def comparison(*shown: str) -> Reading:
    """The table of `axs6 compare`, or some of its columns by their names."""

    def read(runs: Sequence[CommandRun]) -> dict[str, Any]:
        (found,) = (run.json for run in runs)
        every = [column for name in found["columns"] for column in GROUPS[name].columns]
        columns = [column for column in every if not shown or column.name in shown]
        rows = [
            [row["format"], *(_written(column, row[column.name]) for column in columns)]
            for row in found["formats"]
        ]
        titles = [f"{x.title} %" if x.form.endswith("%") else x.title for x in columns]
        return {"table": {"columns": ["format", *titles], "rows": rows}}

    return read


def _written(column: Column, value: float | None) -> float | str:
    """A figure as tables show it, percentages without their sign; "-" where there is none."""
    if value is None:
        return "-"
    text = format(value, column.form).replace(",", "").removesuffix("%")
    return float(text) if "." in text else int(text)


def accumulators(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Errors of dot products in dB over the bits that accumulators keep."""
    (found,) = (run.json for run in runs)

    def decibels(x: float | None) -> float | str:
        return "exact" if x is None else round(x, 1)

    columns = ["format", "accumulator", "of the format", *map(str, found["fractions"])]
    rows = [
        [
            each["format"],
            each["accumulator"],
            *map(decibels, (each["format_db"], *each["error_db"])),
        ]
        for each in found["series"]
    ]
    values = {"products": found["products"], "length": found["length"]}
    return {"values": values, "table": {"columns": columns, "rows": rows}}


def parts(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Areas of a dot product flattened, with its hierarchy, and of its accumulator and division."""
    (found,) = runs[0].json
    each = {part["path"]: part["each"]["figures"]["area"] for part in found["parts"]}
    accumulator, divide = each["lane0/accumulator"], each["lane0/result"]
    whole = found["unflattened"]["figures"]["area"]
    values = {
        "flattened": found["total"]["figures"]["area"],
        "whole": whole,
        "term": whole - accumulator - divide,
        "accumulator": accumulator,
        "divide": divide,
    }
    return {"values": {name: round(value) for name, value in values.items()}}


def clocks(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Clock and cells of designs placed and routed for an ECP5."""
    rows = []
    for run in runs:
        (found,) = run.json
        figures = found["total"]["figures"]
        parameters = {k: found["parameters"][k] for k in ("block", "stages", "view")}
        said = ", ".join(f"{name} {value}" for name, value in parameters.items())
        unit = run.command.split()[2]
        cells = [round(found["timing"]["fmax_mhz"], 1)]
        cells += [figures[name] for name in ("luts", "dsps", "flip_flops")]
        rows.append([f"{unit}, {said}", *cells, f"`{run.command}`"])
    columns = ["unit", "Fmax MHz", "LUTs", "DSPs", "flip-flops", "command"]
    return {"table": {"columns": columns, "rows": rows}}


def clocks_of_formats(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Latency, clock and area of a unit over its stages, in formats, on an FPGA and in cells."""
    rows: dict[tuple[str, int], list[Any]] = {}
    for run in runs:
        for point in run.json["points"]:
            parameters, figures = point["parameters"], point["figures"]
            key = (parameters["format"], parameters["stages"])
            row = rows.setdefault(key, [*key, point["latency"]])
            clock = point["timing"]["fmax_mhz"] or 1e6 / point["timing"]["delay_ps"]
            row += [round(clock, 1), round(figures.get("area", figures.get("luts")))]
    columns = ["format", "stages", "latency"]
    columns += ["ecp5, MHz", "LUTs", "sky130, MHz", "area, µm²"]
    return {"table": {"columns": columns, "rows": list(rows.values())}}


def views(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """LUTs and DSP blocks of both views of units on FPGAs.

    The carry cells of ecp5 have two LUTs each, which its figures leave out.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    for run in runs:
        for point in run.json["points"]:
            parameters, figures, target = (point[k] for k in ("parameters", "figures", "target"))
            inside = 2 * figures["carries"] if target == "ecp5" else 0
            blocks = f" + {figures['dsps']} DSP" if figures["dsps"] else ""
            row = found.setdefault((point["unit"], parameters["format"]), {})
            row[f"{target}, {parameters['view']}"] = f"{figures['luts'] + inside:,}{blocks}"
    columns = ["unit", "format", *next(iter(found.values()))]
    rows = [[*key, *row.values()] for key, row in found.items()]
    return {"table": {"columns": columns, "rows": rows}}


def energies(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Energies relative to those of an INT8 MAC."""
    rows = []
    for run in runs:
        found = run.json[0]["energy"]
        relative = f"{found['relative']:.3f} ± {found['relative_error']:.3f}"
        rows.append([run.command.split()[2], relative, found["operation"], f"`{run.command}`"])
    return {"table": {"columns": ["unit", "relative energy", "of a", "command"], "rows": rows}}


def random_bits(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Area and depth of an encoder over the bits of its random words."""
    nearest, swept = runs[0].json[0], runs[1].json["points"]
    base = nearest["total"]["figures"]["gate_equivalents"]
    rows: list[list[Any]] = [["nearest", base, "-", nearest["timing"]["levels"]]]
    for point in swept:
        area = point["figures"]["gate_equivalents"]
        label = f"R = {point['parameters']['random_bits']}"
        rows.append([label, area, f"{100 * (area / base - 1):.0f} %", point["figures"]["levels"]])
    columns = ["words", "gate equivalents", "over nearest", "levels"]
    return {"table": {"columns": columns, "rows": rows}}


def encoders(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Area, delay and energy of plain encoders, of those that choose the scale, and of a rotation
    in front of them."""
    plain: dict[str, float] = {}
    rows: list[list[Any]] = []
    for run in runs:
        (found,) = run.json
        unit, parameters = run.command.split()[2], found["parameters"]
        name = parameters.get("format", f"blocks of {parameters['block']}")
        area, energy = found["total"]["figures"]["area"], found["energy"]["per_operation"]
        base = plain.setdefault(name.partition("_")[0], area)
        over = f"{100 * (area / base - 1):.0f} %" if unit == "choice_encoder" else "-"
        delay = round(found["timing"]["delay_ps"])
        rows.append([unit, name, round(area), over, delay, round(energy, 1)])
    columns = ["unit", "format", "area, µm²", "over plain", "delay, ps", "fJ a value"]
    return {"table": {"columns": columns, "rows": rows}}


def claims(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Claims of documents, measurements, and whether the claims are true."""
    rows = [list(row.values()) for row in runs[0].json]
    return {"table": {"columns": ["source", "claim", "measured", "", "command"], "rows": rows}}
