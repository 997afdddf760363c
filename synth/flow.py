"""Options of a synthesis run: target, library and goal, checked and written to files."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axs6.sim.process import temporary_folder
from axs6.synth import gates, sky130
from axs6.synth.adders import AdderCell, adder_cell
from axs6.synth.cells import CellLibrary, cell_library, read_cells
from axs6.synth.errors import SynthesisError
from axs6.synth.fanout import buffering
from axs6.synth.names import check_name
from axs6.synth.needs import check_library
from axs6.synth.scripts import abc_scripts, constraints
from axs6.synth.surroundings import Surroundings, surroundings
from axs6.synth.targets import (
    CONSTRAINTS,
    FPGAS,
    GATES,
    GENLIB,
    LIBRARY,
    MAP_SCRIPT,
    TARGETS,
    commands,
    models,
)


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """Options of a synthesis.

    Args:
        target: `generic` (gates of `axs6.synth.gates`), `sky130` (the compact library of
            `axs6.synth.sky130`), or `ice40`, `ecp5` or `xc7` (memories are inferred and, on the
            last two, DSP blocks; no I/O buffers; on xc7 no shift-register LUTs, so that flip-flops
            count alike on all targets).
        liberty: Liberty file of standard cells to map to instead.
        optimise: goal of mapping to gates, `area` or `speed`; None for area or, with a clock, for
            the first of `axs6.synth.scripts.FOR_CLOCK` that meets it.
        clock: period of the clock in picoseconds that the design is held to, if any.
        adder_cells: whether full adders become cells of the library.
        fmax: whether to place and route for Fmax, on ice40 and ecp5.
        breakdown: whether to make a second run, for the parts of a report.
        share: whether Yosys looks for operators that are never used at the same time, to build them
            once; this takes most of the time of a wide unit. FPGA flows always do.
    """

    target: str = "generic"
    liberty: Path | None = None
    optimise: str | None = None
    clock: float | None = None
    adder_cells: bool = False
    fmax: bool = False
    breakdown: bool = True
    share: bool = True


@dataclass(frozen=True)
class Flow:
    """How a design is synthesised.

    `kind` is a target or `liberty`, and `source` how messages name it. `cells` are those of the
    library, `around` what its timing assumes around a unit; both are None without a library, and
    the latter with a library that has no delays. `adders` is given where adders become cells.
    `share` and `clock` are as of `Synthesis`.
    """

    kind: str
    source: str
    liberty: Path | None
    goal: str
    cells: CellLibrary | None
    around: Surroundings | None
    adders: AdderCell | None
    share: bool
    clock: float | None = None

    @property
    def optimise(self) -> str | None:
        """Goal of mapping to gates; None on FPGAs, which use Yosys's own flows."""
        return None if self.kind in FPGAS else self.goal

    @property
    def timed(self) -> bool:
        """Whether ABC can take the library's delays into account."""
        return self.around is not None and self.cells is not None and self.cells.buffer is not None

    def write(
        self,
        job: Path,
        verilog: str,
        top: str,
        *,
        flatten: bool,
        expand: Sequence[str] | None = None,
    ) -> None:
        """Write the files that a worker and its commands read into a new folder.

        `expand` asks for the mapped netlist in place of figures: the cells as they are where it is
        empty, else what these commands make of them.
        """
        job.mkdir()
        adders = self.adders.commands() if self.adders else []
        registers, rest = commands(
            self.kind,
            top,
            flatten=flatten,
            share=self.share,
            adders=adders,
            timed=self.timed,
            dont_use=self.cells.dont_use if self.cells else [],
        )
        plan = buffering(self.cells) if self.cells else None
        content = {
            "top": top,
            "flatten": flatten,
            "registers": registers,
            "rest": rest,
            "adders": list(self._scripts()) if adders else False,
            "liberty": LIBRARY if self.cells else None,
            "expand": None if expand is None else list(expand),
            "buffering": plan.to_dict() if plan else None,
        }
        files = {"job.json": json.dumps(content), "design.v": verilog, **self._files()}
        for name, text in files.items():
            (job / name).write_text(text, encoding="utf-8")
        if self.liberty:
            (job / LIBRARY).symlink_to(self.liberty.resolve())

    def digest(self) -> str:
        """SHA-256 of a worker's inputs except the design: commands, scripts and library."""
        with temporary_folder("axs6-flow-") as folder:
            job = folder / "job"
            self.write(job, "", "top", flatten=True)
            parts = [
                f"{path.name}\0".encode() + path.read_bytes() for path in sorted(job.iterdir())
            ]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def _scripts(self) -> dict[str, str]:
        """The ABC scripts by file name."""
        scripts = abc_scripts(
            self.goal, timed=self.timed, adders=self.adders is not None, period=self.clock
        )
        names = [MAP_SCRIPT, *(f"{number}-{MAP_SCRIPT}" for number in range(1, len(scripts)))]
        return dict(zip(names, scripts, strict=True))

    def _files(self) -> dict[str, str]:
        if self.kind in FPGAS:
            return {GATES: models(self.kind)}
        files = {**self._scripts(), GENLIB: gates.genlib(), GATES: gates.verilog()}
        if self.around and self.timed:
            files[CONSTRAINTS] = constraints(self.around.driver.name, self.around.load)
        if self.kind == "sky130":
            files[LIBRARY] = sky130.liberty()
        return files | (self.adders.files() if self.adders else {})


def flow(options: Synthesis) -> Flow:
    """Check what is asked for and read the library.

    Raises:
        SynthesisError: an unknown target or goal, a library that cannot be read, is none, has a
            fault, lacks gates, or has no full adder for `adder_cells`, or things that do not go
            together.
    """
    target, liberty, adders = options.target, options.liberty, options.adder_cells
    goal = options.optimise or "area"
    abc_scripts(goal, timed=False, adders=adders, period=options.clock)
    kind, source = target, f"target {target}"
    if liberty is not None:
        if target != "generic":
            raise SynthesisError(f"a library and target {target!r} cannot go together: give one")
        kind, source = "liberty", f"library {liberty}"
    elif target not in TARGETS:
        raise SynthesisError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    if kind in FPGAS and goal != "area":
        raise SynthesisError(f"--optimise is only for gate targets, not for {source}")
    if adders and kind not in ("liberty", "sky130"):
        raise SynthesisError(f"adder cells need a cell library, but {source} has none")
    cells = None
    if liberty is not None:
        cells = read_cells(liberty)
    elif kind == "sky130":
        cells = cell_library(sky130.liberty(), source)
    if cells is not None:
        check_library(cells, source)
    plan = Flow(
        kind,
        source,
        liberty,
        goal,
        cells,
        surroundings(cells) if cells else None,
        adder_cell(cells, source) if cells and adders else None,
        options.share,
        options.clock,
    )
    if options.clock is not None:
        _check_clock(plan, options)
    return plan


def _check_clock(plan: Flow, options: Synthesis) -> None:
    """Raise SynthesisError unless the period of a clock compares with delays of the target."""
    if plan.kind in FPGAS:
        if not options.fmax:
            raise SynthesisError(f"a clock on {plan.source} needs --fmax: its delays are routed")
    elif not plan.timed:
        raise SynthesisError(
            f"a clock needs delays and a buffer, but {plan.source} lacks them: "
            "--target sky130, --liberty FILE, or --fmax on ice40 and ecp5"
        )


def check_run(top: str, timeout: float) -> None:
    """Check a top module's name and a time limit.

    Raises:
        SynthesisError: one of them is unusable.
    """
    if not timeout > 0:
        raise SynthesisError(f"timeout must be more than 0 seconds, not {timeout:g}")
    check_name(top, "the top module")
