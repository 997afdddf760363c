"""Enumerations that stop and go on: the state file, shares, and what the command says."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

import axs6.hw.fp32.convert
from axs6.commands.exhaustive import enumerate_spaces
from axs6.commands.results import ResultFiles
from axs6.sim.exhaustive.conversion_spaces import conversion_space
from axs6.sim.exhaustive.runner import Share, run_space
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.state import State, default_state

WHOLE = Share()


FEW = 10
"""Chunks of `few_chunks`."""


def few_chunks() -> Space:
    """The first chunks of the conversion as a space of their own."""
    space = conversion_space()
    return replace(space, cases=FEW * space.chunk_cases, chunks=FEW)


def counting(chunks: list[int]) -> Space:
    """The conversion, which notes the chunks that it is asked for."""
    space = few_chunks()

    def inputs(chunk: int) -> dict[str, Any]:
        chunks.append(chunk)
        return space.inputs(chunk)

    return replace(space, inputs=inputs)


def interrupted(space: Space, path: Path, chunks: int) -> None:
    """Run a space and stop it after some chunks."""
    state = State(path)
    assert state.enter(space)
    left = iter(range(chunks - 1))

    def advance(cases: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_space(space, state, WHOLE, 2, advance)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "new/state.json"
    interrupted(few_chunks(), path, 5)
    asked: list[int] = []
    space = counting(asked)
    state = State(path)
    assert state.enter(space)
    outcome = run_space(space, state, WHOLE, 2)
    assert sorted(asked) == list(range(5, FEW))
    assert (outcome.earlier, outcome.compared) == (
        5 * space.chunk_cases,
        (FEW - 5) * space.chunk_cases,
    )
    asked.clear()
    again = State(path)
    assert again.enter(space)
    assert run_space(space, again, WHOLE, 2).earlier == space.cases
    assert asked == []
    assert [file.name for file in path.parent.iterdir()] == ["state.json"]


def test_a_share_goes_on_with_what_others_did(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    interrupted(few_chunks(), path, 3)
    asked: list[int] = []
    space = counting(asked)
    state = State(path)
    state.enter(space)
    share = Share(2, 3)
    run_space(space, state, share, 1)
    assert sorted(asked) == [chunk for chunk in share.chunks(FEW) if chunk >= 3]


def test_a_changed_design_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    interrupted(few_chunks(), path, 5)
    monkeypatch.setattr(axs6.hw.fp32.convert, "COARSE", (3, 4))
    changed = few_chunks()
    state = State(path)
    assert not state.enter(changed)
    assert not any(state.is_done(changed, chunk) for chunk in range(FEW))
    assert run_space(changed, state, Share(1, FEW), 1).difference is None


def test_a_difference_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    space = few_chunks()
    references = {"golden model": lambda items: {"value": items["exponent"]}}
    for _ in range(2):
        state = State(path)
        state.enter(space)
        outcome = run_space(replace(space, references=references), state, WHOLE, 2)
        assert (outcome.compared, outcome.earlier) == (0, 0)
        assert outcome.difference is not None
        assert "sum 0x8000, exponent 0x0000" in outcome.difference


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"kind": "axs6 enumer',
        "[]",
        '{"kind": "another", "spaces": {}}',
        '{"kind": "axs6 enumeration 2"}',
        '{"kind": "axs6 enumeration 2", "spaces": {"division": {"key": "0", "done": "-1"}}}',
        '{"kind": "axs6 enumeration 2", "spaces": {"division": {"key": "0", "done": 7}}}',
    ],
)
def test_a_file_that_is_no_state_is_refused_and_kept(text: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"state\.json is not a state of axs6 validate"):
        State(path)
    assert path.read_text() == text


def test_a_state_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    interrupted(few_chunks(), path, 3)
    content = json.loads(path.read_text())
    ((name, space),) = content["spaces"].items()
    for change in ({"done": "f"}, {"done": "07"}, {"done": "0"}, {"key": "0" * 32}):
        changed = {**content, "spaces": {name: {**space, **change}}}
        path.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=r"state\.json was changed after it was written: its"):
            State(path)
    path.write_text(json.dumps({**content, "spaces": {"other": space}}))
    with pytest.raises(ValueError, match=r"state\.json was changed after it was written: its"):
        State(path)
    path.write_text(json.dumps(content))
    assert State(path).enter(few_chunks())


@pytest.mark.parametrize("bit", range(8))
def test_no_bit_of_a_state_can_flip_unnoticed(bit: int, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    interrupted(few_chunks(), path, 3)
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"is not a state|was changed"):
            State(path)


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a state"):
        State(path)


def test_a_state_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    space = conversion_space()
    state = State(tmp_path / "folder/state.json")
    state.enter(space)
    (tmp_path / "folder").write_text("")
    with pytest.raises(OSError, match=r"cannot write to .*/folder: File exists"):
        state.record(space, 0)


def test_the_state_is_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path))
    assert default_state() == tmp_path / "enumerations.json"


@pytest.mark.parametrize(("chunks", "of"), [(1024, 64), (73, 64), (73, 5), (128, 3), (1, 7)])
def test_shares_are_spread_and_make_up_the_whole(chunks: int, of: int) -> None:
    shares = [Share(number, of).chunks(chunks) for number in range(1, of + 1)]
    assert {chunk for share in shares for chunk in share} == set(range(chunks))
    for share in shares:
        assert chunks // of <= len(share) <= chunks // of + 2
        assert share == sorted(set(share)) != []
        distances = [b - a for a, b in pairwise(share)]
        assert all(distance <= 3 * of for distance in distances)
    if chunks % of == 0:
        assert sum(map(len, shares)) == chunks


def test_the_share_of_ci_stays_the_same() -> None:
    assert Share(1, 64).chunks(128) == [0, 89]


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "a/b", "1/4/2", "1.5/2"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="share must be N/M with 1 <= N <= M, not "):
        Share.parse(text)


def test_a_share_is_read() -> None:
    assert Share.parse("3/16") == Share(3, 16)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command know the first chunks of the conversion alone."""
    monkeypatch.setattr("axs6.sim.exhaustive.catalog.conversion_spaces", lambda: [few_chunks()])


def command(folder: Path, share: str = "1/1") -> list[dict[str, Any]]:
    """The outcomes that the command writes."""
    target = folder / "figures.json"
    try:
        files = ResultFiles(str(target))
        enumerate_spaces(0, "structure", ["conversion"], share, folder / "state.json", files)
    finally:
        outcomes = json.loads(target.read_text())
    assert isinstance(outcomes, list)
    return outcomes


@pytest.mark.usefixtures("short")
def test_the_command_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = few_chunks().cases
    (outcome,) = command(tmp_path, "1/2")
    assert 0 < outcome["compared"] < cases
    assert f"pass conversion: {outcome['compared']:,} of {cases:,} cases" in capsys.readouterr().out
    (rest,) = command(tmp_path)
    assert rest["earlier"] == outcome["compared"]
    assert rest["compared"] == cases - rest["earlier"]
    assert "of them in earlier runs" in capsys.readouterr().out
    (nothing,) = command(tmp_path)
    assert (nothing["earlier"], nothing["compared"]) == (cases, 0)
    assert f"pass conversion: {cases:,} cases equal in earlier runs" in capsys.readouterr().out


@pytest.mark.usefixtures("short")
def test_the_command_stops_at_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command(tmp_path, f"1/{FEW}")
    capsys.readouterr()
    monkeypatch.setattr(axs6.hw.fp32.convert, "shift_right_sticky", lambda m, value, *_: value)
    with pytest.raises(typer.Exit) as stopped:
        command(tmp_path)
    assert stopped.value.exit_code == 1
    out = capsys.readouterr().out
    assert "conversion starts again: the hardware or the model changed" in out
    assert "FAIL conversion: " in out
    assert "stopped at a difference" in out
    (outcome,) = json.loads((tmp_path / "figures.json").read_text())
    assert "in the golden model" in outcome["difference"]
    assert outcome["difference"] in out
