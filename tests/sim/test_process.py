"""What is left of child processes and temporary folders, however a process ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from axs6.sim.process import child_process, first_error, temporary_folder

HELD = """
import os, shutil, signal, subprocess, sys, time
from pathlib import Path
from axs6.sim.process import child_process, temporary_folder

signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))
# As a worker of Yosys that starts ABC, which writes on.
inner = "sleep 60 & while :; do echo x > \\"$0/$(date +%N)\\"; sleep 0.01; done"
with temporary_folder("axs6-test-") as folder:
    (folder / "deep").mkdir()
    command = ["sh", "-c", "sh -c '" + inner + "' \\"$0\\" & wait", str(folder / "deep")]

    class Child(subprocess.Popen):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            if given[0] == command:
                print(self.pid, os.fsencode(folder).hex(), flush=True)
                {begun}

    subprocess.Popen = Child
    with child_process(command, Path(sys.argv[1], "log"), os.environ):
        {end}
"""


def members(group: int) -> list[int]:
    """The processes of a group that run."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = each.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            found.append(int(each.parent.name))
    return found


@pytest.mark.parametrize(
    ("begun", "end", "status"),
    [
        ("pass", "os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("pass", "os._exit(3)", 3),
        ("pass", "sys.exit(4)", 4),
        ("pass", "shutil.rmtree = lambda *_, **__: sys.exit(5)", 5),
        ("os.kill(os.getpid(), signal.SIGTERM)", "time.sleep(60)", 6),
        ("pass", "pass", 0),
    ],
    ids=["SIGKILL", "at once", "exit", "while it clears", "while it begins", "end"],
)
def test_nothing_is_left_however_a_process_ends(
    tmp_path: Path, begun: str, end: str, status: int
) -> None:
    temporary = tmp_path / "with\nline"
    temporary.mkdir()
    script = HELD.replace("{begun}", begun).replace("{end}", end)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == status, done.stderr
    group, name = done.stdout.split()
    folder = Path(os.fsdecode(bytes.fromhex(name)))
    assert folder.parent == temporary
    deadline = time.monotonic() + 20
    while (members(int(group)) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not members(int(group))
    assert not list(temporary.iterdir())


def test_what_has_ended_is_no_longer_guarded(tmp_path: Path) -> None:
    """A folder and a group that come again under the same name are somebody else's."""
    script = f"""
import os, signal
from pathlib import Path
from axs6.sim.process import child_process, temporary_folder
with temporary_folder("axs6-test-") as folder:
    with child_process(["true"], Path({str(tmp_path)!r}, "log"), os.environ) as child:
        child.wait()
folder.mkdir()
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=False, timeout=30)
    time.sleep(0.5)
    assert len(list(tmp_path.glob("axs6-test-*"))) == 1


def test_several_children_and_folders(tmp_path: Path) -> None:
    with temporary_folder("axs6-one-") as one, temporary_folder("axs6-two-") as two:
        with child_process(["sleep", "60"], one / "log", os.environ) as child:
            assert members(child.pid) == [child.pid]
        assert not members(child.pid)
        (two / "file").write_text("")
    assert not one.exists()
    assert not two.exists()


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("a.v:3: Error: no x\nError: stopped\n", "a.v:3: Error: no x"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 2, in <module>\n'
            "    raise ValueError(\n        text\n    )\nValueError: no libpython\n",
            "ValueError: no libpython",
        ),
        ("begin\nkilled\n\n", "killed"),
        ("", "it printed nothing"),
    ],
)
def test_the_first_error_of_a_log(written: str, error: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(written)
    assert first_error(log) == error
