"""The user's own models, from a function in a Python file."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from axs6.sim.tools import ToolError
from axs6.studies.request import check_file
from axs6.studies.workload import Workload


def load(path: Path, function: str) -> Workload:
    """Run a function of a Python file that returns a workload.

    The function takes no argument and returns (model, inputs, targets), a fourth element being
    the metric, or a `Workload`.

    Raises:
        OSError, ValueError: as `returned`, or it returns something else.
    """
    given = returned(path, function)
    if isinstance(given, Workload):
        return given
    with blamed(path):
        if not isinstance(given, tuple) or len(given) not in (3, 4):
            kind = type(given).__name__
            if isinstance(given, tuple):
                kind += f" of {len(given)}"
            raise TypeError(
                f"{function} must return (model, inputs, targets) or "
                f"(model, inputs, targets, metric), not {kind}"
            )
        return Workload(*given)


def returned(path: Path, function: str) -> object:
    """The result of a function of a Python file.

    While the file and the function run, imports find the modules that lie beside it.

    Raises:
        OSError: the file cannot be read.
        ValueError: the function is missing or raises; the message names the file, and the line if
        known.
    """
    check_file(path)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with blamed(path):
            make = getattr(_module(path), function, None)
            if not callable(make):
                raise ValueError(f"no function {function!r} in this file")
            given: object = make()
            return given
    finally:
        sys.path.remove(str(path.parent.resolve()))


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """A context that turns exceptions into a ValueError that names the file. Exceptions of missing
    or failing tools of the project pass.
    """
    try:
        yield
    except ToolError:
        raise
    except (Exception, SystemExit) as error:
        raise ValueError(_blame(path, error)) from error


def _blame(path: Path, error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    if lines:
        return f"{path}:{lines[-1]}: {type(error).__name__}: {error}"
    plain = isinstance(error, ValueError | TypeError | RuntimeError)
    return f"{path}: {error}" if plain else f"{path}: {type(error).__name__}: {error}"


def _module(path: Path) -> ModuleType:
    """The file, imported under a unique module name."""
    name = f"axs6_study_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ValueError("the name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses and pickle look for what is defined in the file.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
