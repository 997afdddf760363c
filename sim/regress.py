"""Regressions: runs of a unit's bench in a Verilog simulator, and their results."""

import logging
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from axs6.golden.arguments import check_integer
from axs6.hw.registry import BUS_UNITS, find
from axs6.hw.verilog import Generated, generate
from axs6.replacing import make_folder
from axs6.sim.bench.configuration import TESTS, VARIABLE, Configuration
from axs6.sim.coverage import Coverage, merged
from axs6.sim.launcher import LOG, run
from axs6.sim.process import first_error, temporary_folder
from axs6.sim.tools import check_simulator
from axs6.sim.waves import named_fields

UNIT_BENCH, BUS_BENCH = "axs6.sim.bench.unit_bench", "axs6.sim.bench.axis_bench"
STAGES = (0, 1, 3, None)
"""Numbers of stages that the configurations of a unit use in turn; None is as many as it can."""

_log = logging.getLogger("axs6")


@dataclass(frozen=True)
class Test:
    """One test of a bench: its name, its time in seconds, and why it failed, if it did."""

    name: str
    seconds: float
    failure: str | None


@dataclass(frozen=True)
class Regression:
    """The outcome of one unit's bench.

    `failure` says why the run as a whole does not count, beside any test that failed: no results
    file, or no tests in it. `coverage` counts what the tests that passed have met; it is None
    unless it was asked for.
    """

    unit: str
    parameters: dict[str, Any]
    simulator: str
    seed: int
    tests: tuple[Test, ...]
    failure: str | None
    items: int
    outputs: int
    coverage: Coverage | None = None

    @property
    def passed(self) -> bool:
        """Whether there were tests and all of them passed."""
        return not self.failures

    @property
    def failures(self) -> list[tuple[str, str]]:
        """Failures and their reasons: tests by name, and "run" for the run as a whole."""
        failed = [(test.name, test.failure) for test in self.tests if test.failure is not None]
        return failed if self.failure is None else [*failed, ("run", self.failure)]

    @property
    def title(self) -> str:
        """Unit and parameters, in one line."""
        return " ".join([self.unit, *(f"{k}={v}" for k, v in self.parameters.items())])

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "unit": self.unit,
            "parameters": self.parameters,
            "simulator": self.simulator,
            "seed": self.seed,
            "passed": self.passed,
            "failure": self.failure,
            "items": self.items,
            "outputs": self.outputs,
            "tests": [vars(test) for test in self.tests],
            **({} if self.coverage is None else {"coverage": self.coverage}),
        }


def configurations(
    unit: str, given: Mapping[str, Any], *, vary: bool = False
) -> list[dict[str, Any]]:
    """Parameters of a unit under which it is tested, default ones first.

    Without parameters in `given`, those of `Unit.combinations`, and between them every number of
    stages in `STAGES` and every value in the unit's samples, where the others allow it. With some,
    the one configuration in which the others have their defaults; with `vary` the others vary as
    they do without.

    Raises:
        ValueError: the unit is unknown or refuses a parameter.
    """
    if given and not vary:
        return [find(unit).parameters(given)]
    entry = find(unit)
    fixed = entry.parameters(given)
    combinations = entry.combinations(given)
    samples = {name: values for name, values in entry.samples.items() if name not in given}
    if "stages" not in given:
        samples["stages"] = STAGES
    rows = [{**fixed, **combination} for combination in combinations]
    left = {
        name: list(values)
        for name, values in samples.items()
        if any(entry.takes(name, row) for row in rows)
    }
    turns = {name: cycle(samples[name]) for name in left}

    def sampled(row: dict[str, Any]) -> dict[str, Any]:
        each = dict(row)
        for name in left:
            if entry.takes(name, row):
                each[name] = next(turns[name])
                left[name] = left[name][1:]
        if "stages" not in given:
            most = entry.most_stages(each)
            each["stages"] = most if each["stages"] is None else min(each["stages"], most)
        return each

    chosen = [sampled(row) for row in rows]
    while missing := [name for name, values in left.items() if values]:
        chosen.append(sampled(next(row for row in rows if entry.takes(missing[0], row))))
    return chosen


def regress(
    unit: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    simulator: str = "verilator",
    seed: int = 0,
    items: int = 10_000,
    waves: Path | None = None,
    generated: Generated | None = None,
    test_module: str | None = None,
    seconds: float = 3600,
    test: str | None = None,
    coverage: bool = False,
) -> Regression:
    """Run a unit's bench: corner cases, random items at full rate and with stalls, and a reset.

    Args:
        unit: name in the registry.
        parameters: of the unit; the others keep their defaults.
        simulator: "verilator" or "icarus".
        seed: of the random items and stalls.
        items: random items at full rate; a quarter as many again come with stalls.
        waves: folder for the waveform file.
        generated: Verilog to test in place of what the unit generates.
        test_module: cocotb tests to run in place of the unit's bench.
        seconds: time limit of the run, after the build.
        test: one of `TESTS`, to run it alone.
        coverage: whether to collect what the items have met; not on a bus.

    Raises:
        ValueError: unknown unit, parameter, simulator or test, no items, a negative seed, or
            coverage of a unit on a bus.
        OSError: the folder for waveforms cannot be made.
        ToolError: the simulator is missing, cannot build the unit, or takes too long.
    """
    settings = find(unit).parameters(parameters or {})
    if coverage and unit in BUS_UNITS:
        raise ValueError(f"coverage is of units without a bus, not {unit}")
    check_simulator(simulator)
    check_integer("items", items, 1)
    check_integer("seed", seed, 0)
    check_test(test)
    if waves is not None:
        make_folder(waves)
    made = generated or generate(unit, **settings)
    if waves is not None and simulator == "verilator":
        made = replace(made, verilog=made.verilog + named_fields(made))
    _log.info("testing %s with %s", made.module, simulator)
    with temporary_folder("axs6-regress-") as folder:
        configuration = Configuration(made.manifest, seed, items, str(folder), coverage)
        results = run(
            made,
            simulator,
            test_module or (BUS_BENCH if unit in BUS_UNITS else UNIT_BENCH),
            folder,
            {VARIABLE: str(configuration.save())},
            seed=seed,
            waves=waves is not None,
            seconds=seconds,
            test=test,
        )
        tests, failure = read_results(results)
        if failure is not None:
            failure = f"{failure} ({first_error(results.parent / LOG)})"
        figures = configuration.figures()
        outcome = Regression(
            unit,
            settings,
            simulator,
            seed,
            tests,
            failure,
            items=sum(line["items"] for line in figures),
            outputs=sum(line["outputs"] for line in figures),
            coverage=merged(line["coverage"] for line in figures) if coverage else None,
        )
        if waves is not None:
            _keep_waves(folder, waves, outcome)
    return outcome


def coverage_of_units(outcomes: Iterable[Regression]) -> dict[str, Coverage]:
    """The coverage of each unit in all its configurations together."""
    found: dict[str, list[Coverage]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.unit, []).append(outcome.coverage or {})
    return {unit: merged(parts) for unit, parts in found.items()}


def check_test(name: str | None) -> None:
    """Raise ValueError for a name that no test of the benches has; None stands for all tests."""
    if name is not None and name not in TESTS:
        raise ValueError(f"test must be one of {', '.join(TESTS)}, not {name!r}")


def read_results(path: Path) -> tuple[tuple[Test, ...], str | None]:
    """Tests in a cocotb results file, and why the file does not count, if it does not."""
    if not path.exists():
        return (), "the simulator left no results file"
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))
    except ET.ParseError as error:
        return (), f"the results file cannot be read: {error}"
    tests = tuple(
        Test(case.get("name", "?"), float(case.get("time", "0")), _failure(case)) for case in cases
    )
    return tests, None if tests else "no tests were run"


def _failure(case: ET.Element) -> str | None:
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            text = found.get("message") or found.get("error_msg") or (found.text or "").strip()
            return (text or kind).splitlines()[0]
    return None


def _keep_waves(work: Path, waves: Path, outcome: Regression) -> None:
    name = outcome.title.replace(" ", "-").replace("=", "")
    for path in work.glob("*.fst"):
        shutil.move(path, waves / f"{name}.fst")


def junit(outcomes: Iterable[Regression]) -> str:
    """JUnit XML with a suite for each regression."""
    root = ET.Element("testsuites", name="axs6 regress")
    for outcome in outcomes:
        tests = [*outcome.tests]
        if outcome.failure is not None:
            tests.append(Test("run", 0.0, outcome.failure))
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"{outcome.title} {outcome.simulator} seed={outcome.seed}",
            tests=str(len(tests)),
            failures=str(sum(test.failure is not None for test in tests)),
            time=f"{sum(test.seconds for test in tests):.3f}",
        )
        for test in tests:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=f"axs6.{outcome.unit}",
                name=test.name,
                time=f"{test.seconds:.3f}",
            )
            if test.failure is not None:
                ET.SubElement(case, "failure", message=test.failure)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
