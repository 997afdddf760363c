"""Sweeps on Dask clusters of this machine, started and ended here."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axs6.install import install_command
from axs6.synth.sweep import Point, Result, Sweep, runner, store, sweep, tasks
from axs6.synth.sweep import cluster as on_dask

START = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    workers = int(sys.argv[1])
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        for line in sys.stdin:
            cluster.scale(int(line))
"""


class Clusters:
    """Clusters in processes of their own, whose workers have a cache of theirs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.cache = folder / "workers"
        self._started: list[subprocess.Popen[str]] = []
        (folder / "cluster.py").write_text(START)

    def __call__(self, workers: int) -> str:
        """Start one and return its address."""
        child = subprocess.Popen(
            [sys.executable, str(self._folder / "cluster.py"), str(workers)],
            env={**os.environ, "AXS6_CACHE": str(self.cache)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._started.append(child)
        assert child.stdout is not None
        return child.stdout.readline().strip()

    def scale(self, workers: int) -> None:
        """Give the last one as many workers, some time later."""
        pipe = self._started[-1].stdin
        assert pipe is not None
        pipe.write(f"{workers}\n")
        pipe.flush()

    def kill(self) -> None:
        """Kill the last one's scheduler, which its workers do not outlive."""
        self._started[-1].kill()
        self._started[-1].wait()

    def end(self) -> None:
        """End all."""
        for child in self._started:
            child.communicate(timeout=60)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, for what this machine measures."""
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "own"))


@pytest.fixture
def cluster(tmp_path: Path, own_cache: None) -> Iterator[Clusters]:
    clusters = Clusters(tmp_path)
    yield clusters
    clusters.end()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of a cluster that no test ends, and the cache of its worker."""
    clusters = Clusters(tmp_path_factory.mktemp("cluster"))
    yield clusters(1), clusters.cache
    clusters.end()


def dots(expression: str, **options: Any) -> Sweep:
    """Small units, measured without their parts."""
    size = {"block": 8, "format": "mx4"}
    return sweep(["block_dot"], expression, parameters=size, breakdown=False, **options)


@pytest.mark.slow  # processes of this machine do in every run
@pytest.mark.usefixtures("own_cache")
def test_a_cluster_gives_the_results_of_this_machine(
    lasting: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, cache = lasting
    found = dots("stages=1,99", scheduler=address)
    assert len(found.missing) == 1
    assert len(list(cache.glob("area-*"))) == 1
    again = dots("stages=1,99")
    assert [result.cached for result in again.results] == [True, False]
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "other"))
    local = dots("stages=1,99")
    assert found.to_dict() == again.to_dict() == local.to_dict()


@pytest.mark.usefixtures("own_cache")
def test_a_worker_with_other_tools_is_refused(
    lasting: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = lasting
    monkeypatch.setattr(runner, "environment", lambda point: "another version")
    with pytest.raises(RuntimeError, match="must have the same axs6, amaranth, pyosys and library"):
        sweep(["block_dot"], scheduler=address)


def test_a_cluster_without_workers_is_an_error(
    cluster: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "CONNECT_SECONDS", 1)
    with pytest.raises(RuntimeError, match="has no workers"):
        sweep(["block_dot"], scheduler=cluster(0))


@pytest.mark.slow
def test_a_scheduler_that_dies_is_one_line(cluster: Clusters, tmp_path: Path) -> None:
    address = cluster(1)
    command = ("area", "block_dot", "--block", "8", "--format", "mx4", "--sweep", "stages=0,1,2,3")
    child = subprocess.Popen(
        [sys.executable, "-m", "axs6", *command, "--scheduler", address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None and not any((tmp_path / "own").glob("area-*")):
        time.sleep(0.02)
    cluster.kill()
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 2
    *steps, line = errors.splitlines()
    assert line.startswith(f"axs6: the Dask scheduler at {address} went away")
    assert "finished points are kept" in line
    assert all(step.startswith("measured block_dot ") for step in steps)


@pytest.mark.slow  # one without any is in every run
def test_a_cluster_that_loses_its_workers_ends_the_sweep(
    cluster: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "WITHOUT_WORKERS_SECONDS", 1)
    address = cluster(1)
    measured: list[Result] = []

    def take_the_worker(result: Result, done: int, total: int) -> None:
        measured.append(result)
        cluster.scale(0)

    with pytest.raises(RuntimeError) as refusal:
        dots("stages=0,1,2,3", scheduler=address, progress=take_the_worker)
    assert str(refusal.value) == (
        f"the Dask scheduler at {address} has shown no workers for 1 s; finished points are "
        "kept: run it again when there are workers"
    )
    assert measured
    assert all(store.recall(result.point) for result in measured)


@pytest.mark.slow
def test_workers_that_come_back_go_on(cluster: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    count = on_dask._count_workers

    def count_workers(client: Any) -> int:
        counts.append(count(client))
        if counts.count(0) == 1 and counts[-1] == 0:
            cluster.scale(1)
        return counts[-1]

    monkeypatch.setattr(on_dask, "_count_workers", count_workers)
    monkeypatch.setattr(tasks, "_LOOK_SECONDS", 0.1)
    found = dots(
        "stages=0,1,2",
        scheduler=cluster(1),
        progress=lambda result, done, total: cluster.scale(0) if done == 1 else None,
    )
    assert not found.missing
    assert 0 in counts


@pytest.mark.slow
def test_a_library_in_this_folder_is_found_from_others(
    cluster: Clusters, without_flip_flop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cluster(1)
    monkeypatch.chdir(without_flip_flop.parent)
    library = Path(without_flip_flop.name)
    found = dots("stages=0,1", liberty=library, scheduler=address)
    assert dots("stages=0", liberty=library).results[0].cached
    assert found.results[0].measured is not None
    assert found.results[0].measured.report.library == library.name
    assert f"library {library.name} has no" in str(found.results[1].reason)
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "other"))
    assert found.to_dict() == dots("stages=0,1", liberty=library).to_dict()


@pytest.mark.usefixtures("own_cache")
def test_a_library_that_a_worker_cannot_read_is_named_with_the_worker(
    lasting: tuple[str, Path], tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = lasting

    def remove_it(point: Point) -> str:
        digest = store.environment(point)
        tiny.unlink()
        return digest

    monkeypatch.setattr(runner, "environment", remove_it)
    with pytest.raises(RuntimeError) as refusal:
        sweep(["block_dot"], parameters={"block": 8}, liberty=tiny, scheduler=address)
    assert re.fullmatch(
        rf"the worker tcp://127\.0\.0\.1:\d+ on {re.escape(socket.gethostname())} cannot read the "
        rf"library {re.escape(str(tiny))}: No such file or directory",
        str(refusal.value),
    )


@pytest.mark.usefixtures("own_cache")
def test_a_scheduler_that_is_not_there_is_one_line(
    main: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "CONNECT_SECONDS", 0.2)
    monkeypatch.setenv("PATH", "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = main("area", "block_dot", "--scheduler", f"tcp://127.0.0.1:{port}")
    assert done.refused().startswith("cannot reach a Dask scheduler at tcp://127.0.0.1:")
    assert done.stderr.count("\n") == 1


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


def never(line: socket.socket) -> None:
    line.recv(1 << 16)


def closes(line: socket.socket) -> None:
    line.close()


def speaks_http(line: socket.socket) -> None:
    line.recv(1 << 16)
    line.sendall(HTTP)


def speaks_first(line: socket.socket) -> None:
    line.sendall(HTTP * 100)


def sends_zeros(line: socket.socket) -> None:
    line.sendall(bytes(4096))


def drips(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            line.sendall(b"\0")
            time.sleep(0.1)


SPEAKERS = (never, closes, speaks_http, speaks_first, sends_zeros, drips)

ASK = """
import sys
from axs6.synth.sweep import cluster, sweep

cluster.CONNECT_SECONDS = 0.2
for address in sys.argv[1:]:
    try:
        sweep(["block_dot"], scheduler=address)
    except RuntimeError as error:
        print(error)
"""


def test_what_is_no_scheduler_is_one_line(tmp_path: Path) -> None:
    lines: list[socket.socket] = []

    def serve(server: socket.socket, speaks: Callable[[socket.socket], None]) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = server.accept()
                lines.append(line)
                threading.Thread(target=speaks, args=(line,), daemon=True).start()

    with contextlib.ExitStack() as stack:
        addresses = []
        for speaks in SPEAKERS:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=serve, args=(server, speaks), daemon=True).start()
            port = server.getsockname()[1]
            addresses += [f"{protocol}://127.0.0.1:{port}" for protocol in ("tcp", "ws")]
        done = subprocess.run(
            [sys.executable, "-c", ASK, *addresses],
            env={**os.environ, "AXS6_CACHE": str(tmp_path / "cache"), "PATH": ""},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        for line in lines:
            stack.enter_context(line)
    assert (done.returncode, done.stderr) == (0, "")
    for address, said in zip(addresses, done.stdout.splitlines(), strict=True):
        assert said.startswith(f"cannot reach a Dask scheduler at {address}: ")


@pytest.mark.parametrize(
    "address", ["", "host", "tcp://host", "host:port", "http://host:1", "tcp://:1", "host:99999"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="scheduler must be an address such as tcp://host:8786"):
        sweep(["block_dot"], scheduler=address)


def test_distributed_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RuntimeError, match=re.escape(install_command("cluster"))):
        sweep(["block_dot"], scheduler="tcp://127.0.0.1:1")
