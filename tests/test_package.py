"""The package as users install it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from axs6.cli import commands
from axs6.install import install_command
from axs6.studies.explorer.page import page

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    # A copy: the build writes beside the sources, where another worker may be reading them.
    copy = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for name in filter(None, tracked.decode().split("\0")):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target, follow_symlinks=False)
    subprocess.run([*command, str(copy)], check=True, capture_output=True, timeout=300)
    (path,) = folder.glob("*.whl")
    return path


def modules() -> list[str]:
    """Every module in the sources, by the name under which users import it."""
    found = []
    for folder, _, names in os.walk(ROOT / "axs6", followlinks=True):
        for name in names:
            path = (Path(folder) / name).relative_to(ROOT)
            if path.suffix == ".py":
                found.append(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    return sorted(found)


def test_the_wheel_has_every_module_and_each_imports(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # Those that run inside a simulator, or are programs, act when they are imported.
    names = [name for name in modules() if name != "axs6.__main__"]
    script = (
        "import sys, importlib, pathlib\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
        f"for name in {names!r}:\n"
        "    module = importlib.import_module(name)\n"
        f"    assert pathlib.Path(module.__file__).is_relative_to({str(tmp_path)!r}), name\n"
        "from axs6.install import install_command\n"
        "assert install_command('sim') == 'pip install \"axs6[sim]\"'\n"
        "from axs6.studies.explorer.page import page\n"
        "pathlib.Path('explorer.html').write_text(page())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "explorer.html").read_text() == page()


def test_the_install_command_is_that_of_this_checkout() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in project["optional-dependencies"]:
        assert install_command(extra) == f'pip install -e "{ROOT}[{extra}]"'
    assert {each.EXTRA for each in commands().values()} <= set(project["optional-dependencies"])


def run_script(script: str) -> str:
    """What a script prints in a process of its own."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_importing_the_package_loads_numpy_alone() -> None:
    script = (
        "import sys, axs6\n"
        "x = axs6.encode([1.0, 2.0])\n"
        "assert axs6.decode(x).tolist()\n"
        "heavy = {'amaranth', 'cocotb', 'pyosys', 'torch', 'typer', 'sklearn', 'ml_dtypes'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_help_loads_no_heavy_module() -> None:
    script = (
        "import sys\n"
        "from axs6.cli import main\n"
        "sys.argv = ['axs6', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "heavy = {'amaranth', 'cocotb', 'pyosys', 'torch', 'sklearn', 'numpy.random'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_is_refused_loads_no_heavy_module(tmp_path: Path) -> None:
    """Arguments are checked before imports that take seconds."""
    (tmp_path / "mine.py").write_text("")
    refused = [
        ["study", "accuracy", "resnet"],
        ["study", "accuracy", "none.py:model"],
        ["study", "accuracy", "mine.py"],
        ["study", "accuracy", "mine.py:model", "--json", "mine.py"],
        ["study", "accuracy", "mlp", "--block", "9"],
        ["study", "accuracy", "mlp", "--backend", "gpu"],
        ["study", "accuracy", "mlp", "--samples", "0"],
        ["study", "accuracy", "mlp", "--batch", "0"],
        ["study", "accuracy", "mlp", "--rows", "0"],
        ["study", "accuracy", "mlp", "-o", "/proc/x"],
        ["study", "rounding", "--bits", "33"],
        ["demo", "-o", "/proc/x"],
        ["regress", "dot", "--stages", "99"],
        ["regress", "dot", "--simulator", "vcs"],
        ["simulate", "dot", "--input", "none.npz"],
        ["area", "dot", "--target", "asic"],
        ["area", "dot", "--html", "/proc/x/page.html"],
        ["area", "dot", "--energy", "--stimulus", "faces"],
    ]
    script = (
        "import sys\n"
        "from axs6.cli import main\n"
        f"for arguments in {refused!r}:\n"
        "    sys.argv = ['axs6', *arguments]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 2, arguments\n"
        "    heavy = {'cocotb', 'pyosys', 'torch', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "    assert not heavy, (arguments, heavy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == len(refused)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        needed += extra
    names = {re.split(r"[>[]", name)[0].lower().replace("_", "-") for name in needed} - {"axs6"}
    pins = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").splitlines()
    pinned = {line.split("==")[0] for line in pins if "==" in line}
    assert names <= pinned


def test_all_that_is_installed_for_tests_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {
        canonicalize_name(name): version
        for name, version in (line.split("==") for line in lines if "==" in line)
    }
    needed, found = ["axs6[dev]"], dict[str, str]()
    while needed:
        requirement = Requirement(needed.pop())
        for text in requires(requirement.name) or []:
            inner = Requirement(text)
            extras = [{"extra": extra} for extra in (requirement.extras or {""})]
            if inner.marker and not any(map(inner.marker.evaluate, extras)):
                continue
            name = canonicalize_name(inner.name)
            if name not in found or inner.extras:
                found[name] = version(name).partition("+")[0]
                needed.append(str(inner).partition(";")[0])
    found.pop("axs6")
    assert len(found) > 50
    assert {name: pins.get(name) for name in found} == found
