"""Compiled models: what they share."""

import ctypes
from pathlib import Path

import pytest

from axs6.sim.compiler import SOURCE, compiled
from axs6.sim.tools import ToolError

MODEL = '#include <cstdint>\n#include <utility>\nextern "C" int32_t answer() {{ return {}; }}\n'


def test_headers_of_the_system_are_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path))
    for answer in (6, 31):
        files = {SOURCE: MODEL.format(answer)}
        made = compiled("test", "a test", files, ("-O1",), headers_first=True)
        assert ctypes.CDLL(str(made)).answer() == answer
    assert len(list(tmp_path.glob("headers-*"))) == 1
    files = {SOURCE: "#include <no_such_header>\n"}
    with pytest.raises(ToolError, match="no_such_header"):
        compiled("test", "a test", files, ("-O1",), headers_first=True)
