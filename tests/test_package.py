"""The package as users install it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from glob import glob
from importlib.metadata import requires, version
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import axs6
from axs6.cli import commands
from axs6.install import install_command
from axs6.studies.explorer.page import page

ROOT = Path(__file__).parent.parent

SHOWN = ("accumulators.json", "comparison.json", "costs.json", "pareto.jsonl")
"""What is measured and on the explorer's page."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources: the build writes beside them, where another worker may be reading."""
    copy = tmp_path_factory.mktemp("source")
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
    return copy


@pytest.fixture(scope="module")
def released(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("released")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(source)], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def wheel(released: Path) -> Path:
    (path,) = released.glob("*.whl")
    return path


def test_sdist_and_wheel_have_every_file_and_no_link(
    source: Path, released: Path, wheel: Path
) -> None:
    wanted = {
        str(path.relative_to(source)): path.read_bytes()
        for path in map(Path, glob(f"{source}/axs6/**", recursive=True))
        # Of the docs' figures and data, the explorer needs some.
        if path.is_file() and (path.parent.name not in ("figures", "data") or path.name in SHOWN)
    }
    (sdist,) = released.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert all(each.isfile() or each.isdir() for each in archive)
        files = {
            each.name.partition("/")[2]: archive.extractfile(each).read()  # type: ignore[union-attr]
            for each in archive
            if each.isfile()
        }
    with zipfile.ZipFile(wheel) as packed:
        installed = {name: packed.read(name) for name in packed.namelist()}
    for found in (files, installed):
        assert {name: found[name] for name in found if name.startswith("axs6/")} == wanted
    assert files["LICENSE"] == installed[f"axs6-{axs6.__version__}.dist-info/licenses/LICENSE"]
    assert {name for name in files if "/" not in name} >= {"CHANGELOG.md", "constraints.txt"}
    assert not any(name.startswith("tests/") for name in files)


def test_the_version_is_the_newest_of_the_changelog() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert releases[0].startswith(f"{axs6.__version__} - ")
    assert all(re.fullmatch(r"[\d.]+ - \d{4}-\d\d-\d\d", heading) for heading in releases)


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


PYTHONS = ("3.11", "3.12", "3.13", "3.14")

EVERY_FORMAT = """
import hashlib, axs6, numpy
digest = hashlib.sha256()
x = numpy.random.default_rng(0).standard_normal((4, 128)).astype("f4")
for format in axs6.formats():
    blocks = axs6.encode(x, format)
    product = axs6.matmul(blocks, blocks)
    for part in (axs6.pack(blocks), axs6.decode(blocks).tobytes(), product.tobytes()):
        digest.update(part)
print(digest.hexdigest())
"""

COMMANDS = (
    "--version",
    "list",
    "list --formats",
    "info mxfp4",
    "generate block_dot --block 8 -o rtl",
    "validate --format mxfp4 --samples 50",
    "encode x.npy x.safetensors --format mxfp4",
    "decode x.safetensors y.npy",
    "area decoder --block 8",
    "simulate encoder --block 8 --input x.npy",
    "regress decoder --block 8 --items 100",
)


@pytest.fixture(params=PYTHONS)
def clean(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The programs of an environment without packages, under each Python that is installed."""
    names = [
        f"python{request.param}",
        *glob(f"{Path.home()}/.pyenv/versions/{request.param}.*/bin/python"),
    ]
    for python in filter(None, map(shutil.which, names)):
        # Commands of pyenv fail for versions that are not chosen.
        if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0:
            subprocess.run([python, "-m", "venv", tmp_path / "clean"], check=True)
            return tmp_path / "clean" / "bin"
    pytest.skip(f"there is no Python {request.param} here")


@pytest.mark.slow
def test_numpy_alone_is_enough_for_the_golden_model(clean: Path, wheel: Path) -> None:
    subprocess.run([clean / "pip", "install", "--quiet", wheel], check=True)
    listed = subprocess.check_output([clean / "pip", "list", "--format=json"], text=True)
    names = {each["name"] for each in json.loads(listed)}
    assert names - {"pip", "setuptools"} == {"axs6", "numpy"}
    digest = subprocess.check_output([clean / "python", "-c", EVERY_FORMAT], text=True)
    assert digest == run_script(EVERY_FORMAT)
    done = subprocess.run([clean / "axs6", "--help"], check=False, capture_output=True, text=True)
    message = 'axs6: the command line needs more packages: pip install "axs6[cli]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.slow
def test_commands_run_in_a_clean_environment(clean: Path, wheel: Path, tmp_path: Path) -> None:
    wanted = f"{wheel}[cli,files,hw,sim,synth]"
    subprocess.run([clean / "pip", "install", "--quiet", wanted], check=True)
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32).reshape(8, 8))
    for command in COMMANDS:
        done = subprocess.run(
            [clean / "axs6", *command.split()],
            cwd=tmp_path,
            env=os.environ | {"AXS6_CACHE": str(tmp_path / "cache")},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr)


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
