"""Sweeps on Dask clusters of this machine, started and ended here."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from axs6.synth.sweep import runner, sweep

START = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    workers = int(sys.argv[1])
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], str]]:
    """Starts a cluster of some workers, with a cache of their own, and gives its address."""
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "workers"))
    script = tmp_path / "cluster.py"
    script.write_text(START)
    started: list[subprocess.Popen[str]] = []

    def start(workers: int) -> str:
        child = subprocess.Popen(
            [sys.executable, str(script), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(child)
        assert child.stdout is not None
        monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "own"))
        return child.stdout.readline().strip()

    yield start
    for child in started:
        child.communicate(timeout=60)


def test_a_cluster_gives_the_results_of_this_machine(
    cluster: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = (["block_dot"], "stages=0,1,99")
    found = sweep(*design, parameters={"block": 8}, scheduler=cluster(1))
    assert len(found.missing) == 1
    assert len(list((tmp_path / "workers").glob("area-*"))) == 2
    again = sweep(*design, parameters={"block": 8})
    assert [result.cached for result in again.results] == [True, True, False]
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "other"))
    local = sweep(*design, parameters={"block": 8})
    assert found.to_dict() == again.to_dict() == local.to_dict()


def test_a_worker_with_other_tools_is_refused(
    cluster: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cluster(1)
    monkeypatch.setattr(runner, "environment", lambda point: "another version")
    with pytest.raises(RuntimeError, match="must have the same axs6, amaranth, pyosys and library"):
        sweep(["block_dot"], scheduler=address)


def test_a_cluster_without_workers_is_an_error(
    cluster: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axs6.synth.sweep.pools.CONNECT_SECONDS", 1)
    with pytest.raises(RuntimeError, match="has no workers"):
        sweep(["block_dot"], scheduler=cluster(0))


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "axs6", "area", "block_dot"),
            *("--scheduler", f"tcp://127.0.0.1:{port}"),
        ],
        env={"AXS6_CACHE": str(tmp_path / "cache"), "PATH": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("axs6: cannot reach a Dask scheduler at tcp://127.0.0.1:")
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - started < 20


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
    with pytest.raises(RuntimeError, match=r"pip install \"axs6\[cluster\]\""):
        sweep(["block_dot"], scheduler="tcp://127.0.0.1:1")
