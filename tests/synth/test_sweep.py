import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.registry import find
from axs6.synth.errors import SynthesisError
from axs6.synth.sweep import Result, Sweep, processes, store, sweep
from axs6.synth.sweep.tasks import PoolTask

SMALL = {"block": 8, "format": "mx4"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test."""
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def synthesised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first line of each design that is synthesised in this process."""
    done: list[str] = []
    real = store.area

    def area(verilog: str, *arguments: object, **options: object) -> object:
        done.append(verilog.splitlines()[0])
        return real(verilog, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "area", area)
    return done


def dots(expression: str, **options: object) -> Sweep:
    """Small units, measured without their parts unless `options` say otherwise."""
    options = {"breakdown": False, **options}
    return sweep(["block_dot"], expression, parameters=SMALL, **options)  # type: ignore[arg-type]


def test_every_combination_in_order() -> None:
    few = {"random_bits": 1}
    found = sweep(["lfsr"], "stages=0,99 block=8,16", parameters=few, breakdown=False)
    assert [result.point.label(["stages", "block"]) for result in found.results] == [
        f"lfsr stages={stages} block={block}" for stages in (0, 99) for block in (8, 16)
    ]
    assert [result in found.missing for result in found.results] == [False, False, True, True]
    areas = [r.measured.figures["gate_equivalents"] for r in found.results if r.measured]
    assert areas[1] > areas[0]


def test_a_repeated_sweep_synthesises_nothing(synthesised: list[str]) -> None:
    first = dots("stages=0,1")
    assert len(synthesised) == 2
    second = dots("stages=0,1")
    assert len(synthesised) == 2
    assert [result.cached for result in second.results] == [True, True]
    assert second.to_dict() == first.to_dict()


def test_an_interrupted_sweep_goes_on_where_it_was(synthesised: list[str]) -> None:
    def interrupt(result: Result, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dots("stages=0..2", progress=interrupt)
    assert len(synthesised) == 2
    assert len(dots("stages=0..2").results) == 3
    assert len(synthesised) == 3


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sweep]:
    """A cache with one point, and what the sweep found."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXS6_CACHE", str(folder))
        return folder, dots("stages=1")


@pytest.mark.parametrize("damage", ["cut", "changed", "removed"])
@pytest.mark.parametrize("kind", ["area", "verilog"])
def test_a_damaged_entry_is_made_again(
    damage: str, kind: str, cache: Path, synthesised: list[str], filled: tuple[Path, Sweep]
) -> None:
    folder, first = filled
    shutil.copytree(folder, cache)
    (kept,) = dots("stages=1").results
    assert kept.cached
    (entry,) = cache.glob(f"{kind}-*")
    file = entry / "value.json"
    content = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        middle = len(content) // 2
        changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes(content[:middle] if damage == "cut" else changed)
    again = dots("stages=1")
    assert again.to_dict() == first.to_dict()
    assert file.read_bytes() == content
    assert len(synthesised) == (1 if kind == "area" else 0)


def test_another_library_with_the_same_name_is_another_result(tiny: Path) -> None:
    first = dots("stages=0", liberty=tiny)
    tiny.write_text(tiny.read_text().replace("area : 2.0", "area : 3.0"))
    second = dots("stages=0", liberty=tiny)
    assert not second.results[0].cached
    assert second.to_dict() != first.to_dict()


def test_points_that_cannot_be_built_are_listed_and_the_rest_goes_on() -> None:
    most = find("block_dot").most_stages(SMALL)
    found = dots(f"stages={most + 1},0,{most + 2}")
    assert [result.reason for result in found.results] == [
        f"stages must be an integer from 0 to {most}, not {most + 1}",
        None,
        f"stages must be an integer from 0 to {most}, not {most + 2}",
    ]
    assert found.missing == (found.results[0], found.results[2])
    assert found.to_dict()["missing"] == 2
    assert found.to_dict()["points"][0]["missing"] == found.results[0].reason


@pytest.mark.slow  # a quick test of the command has a sweep that goes on past what is missing
def test_a_goal_that_one_target_lacks_is_missing_there() -> None:
    found = dots("target=sky130,ice40 optimise=area,speed")
    assert [result.reason for result in found.results] == [
        *(None, None, None),
        "--optimise is only for gate targets, not for target ice40",
    ]
    area, speed = (result.measured.figures for result in found.results[:2] if result.measured)
    assert speed["delay_ps"] < area["delay_ps"]
    assert speed["area"] > area["area"]


def test_a_synthesis_that_takes_too_long_is_missing(cache: Path) -> None:
    (result,) = dots("stages=0", timeout=0.01).results
    assert result.reason == "target generic: Yosys did not finish within 0.01 s"
    assert not list(cache.glob("area-*"))
    assert dots("stages=0").missing == ()


def test_figures_survive_json() -> None:
    found = dots("stages=0,99 target=generic,ice40")
    read = json.loads(json.dumps(found.to_dict()))
    assert read == found.to_dict()
    assert read["axes"] == {"stages": [0, 99], "target": ["generic", "ice40"]}
    assert [point.get("target") for point in read["points"]] == ["generic", "ice40", None, None]
    assert read["points"][1]["figures"]["luts"] > 0


@pytest.mark.parametrize("breakdown", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_processes_give_the_same_results(breakdown: bool) -> None:
    with_processes = dots("stages=0,1", jobs=2, breakdown=breakdown)
    assert [result.cached for result in with_processes.results] == [False] * 2
    os.environ["AXS6_CACHE"] += "-other"
    local = dots("stages=0,1", breakdown=breakdown)
    assert with_processes.to_dict() == local.to_dict()
    assert local.results[1].measured is not None
    assert local.results[1].measured.latency == 1
    assert local.results[1].measured.figures["flip_flops"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs must be an integer of at least 1, not 0"),
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
        ({"liberty": Path("no.lib")}, "cannot read the library no.lib"),
    ],
)
def test_what_no_point_can_be_measured_with_is_an_error(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises((ValueError, SynthesisError), match=message):
        dots("stages=0", **options)


def test_what_is_swept_cannot_be_given_too(tiny: Path) -> None:
    with pytest.raises(ValueError, match="block is swept and also given as 8"):
        sweep(["block_dot"], "block=8,16", parameters={"block": 8})
    with pytest.raises(ValueError, match="a library and target cannot go together"):
        dots("target=generic", liberty=tiny)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.environ["AXS6_CACHE"] = str(tmp_path / "file" / "cache")
    with pytest.raises(OSError, match="cannot write to the cache"):
        dots("stages=0")


def test_area_sweep_without_any_point_is_an_error(main: Callable[..., Any], tmp_path: Path) -> None:
    arguments = ("area", "block_dot", "--block", "8", "--sweep", "stages=98,99")
    done = main(*arguments, "--json", "figures.json")
    assert done.refused() == "no point of the sweep could be measured"
    reasons = [line for line in done.stdout.splitlines() if line.startswith("missing block_dot ")]
    assert len(reasons) == 2
    assert json.loads((tmp_path / "figures.json").read_text())["missing"] == 2


def test_area_sweep_says_how_each_design_was_measured(main: Callable[..., Any]) -> None:
    unit = ("lfsr", "--block", "8", "--random-bits", "1")
    swept = ("area", *unit, "--sweep", "target=generic,sky130,ice40")
    lines = [line.strip() for line in main(*swept).succeeded().splitlines()]
    sky130 = (
        "timing: linear model of the compact sky130 library; inputs driven by "
        "sky130_fd_sc_hd__buf_1, outputs loaded with 33.4 fF"
    )
    assert [line for line in lines if "lfsr on" in line or line.startswith("timing")] == [
        "lfsr on generic, flattened, for area",
        "timing: levels of gates",
        "lfsr on sky130, flattened, for area",
        sky130,
        "lfsr on ice40, flattened",
    ]


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(stat.parent.name)
            found += [child, *descendants(child)]
    return found


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def finished(cache: Path) -> list[Path]:
    return [entry for entry in cache.glob("area-*") if "partial" not in entry.name]


@pytest.mark.parametrize(
    ("number", "jobs", "status"),
    [
        pytest.param(signal.SIGINT, 1, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 2, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 2, 143, marks=pytest.mark.slow),
        (signal.SIGKILL, 2, -9),
    ],
)
def test_a_signal_keeps_what_is_finished_and_leaves_no_process(
    number: signal.Signals, jobs: int, status: int, cache: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "axs6",
        "area",
        "block_dot",
        "--sweep",
        "block=8,32 stages=0..5",
    ]
    # Shells start what runs in the background with SIGINT ignored.
    started = subprocess.Popen(
        ["env", "--default-signal=INT", *command, "--jobs", str(jobs)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 120
        children: list[int] = []
        while time.monotonic() < deadline:
            children = descendants(started.pid)
            if finished(cache) and len(children) > jobs:
                break
            time.sleep(0.05)
        assert finished(cache)
        started.send_signal(number)
        said = started.communicate(timeout=60)[1]
        assert started.returncode == status
    finally:
        started.kill()
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in children if alive(pid)] == []
    if number != signal.SIGKILL:
        steps = (b"writing ", b"synthesising ", b"measured ")
        assert all(line.startswith(steps) for line in said.splitlines())
        assert sorted(cache.glob("area-*")) == sorted(finished(cache))


def test_a_worker_ends_within_a_task_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def end() -> None:
        processes._end(signal.SIGTERM, sys._getframe())

    class Kept:
        def __del__(self) -> None:
            end()

    statuses: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "_exit", statuses.append)

    class Keeps(PoolTask[str]):
        def outcome(self) -> str:
            Kept()
            return ""

    class Ends(PoolTask[str]):
        def outcome(self) -> str:
            end()
            return ""

    end()
    processes._outcome_in_child(Keeps())
    assert (statuses, signal.getsignal(signal.SIGTERM)) == ([], before)
    try:
        processes._outcome_in_child(Ends())
        assert (statuses, signal.getsignal(signal.SIGTERM)) == ([1], signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGTERM, before)
