"""`axs6 verify`: its list of checks is whole, each is run by its command, and runs resume."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from axs6.golden.formats import ROW_FORMATS, block_format
from axs6.hw.registry import UNITS
from axs6.proof import campaign, campaign_results
from axs6.proof.campaign import Check, Kind, checks, choose, unproved
from axs6.proof.campaign_results import Kept, Result, key_of, run_check
from axs6.proof.specifications import SPECIFICATIONS
from axs6.sim.exhaustive.runner import Share
from axs6.sim.imports import imported
from tests.conftest import is_quick

QUICK = Check(Kind.MUTATE, "expander", "axs6", {"block": 8, "mutants": 20, "items": 50})
WRONG = Check(Kind.PROVE, "expander", "axs6", {"block": 7})


TARGET = "--target"
"""Option of checks of a netlist against the RTL."""

FEW = ("axs6", "mxfp4", "mxfp8_e5m2", "mx9", "nvfp4", "if4", "hif4", "int8")
"""Formats of different kinds; slow runs have all, whose units take 12 s to build."""


@pytest.fixture(scope="module", autouse=True)
def formats(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks of few formats in quick runs."""
    known = [each for each in vars(campaign).values() if hasattr(each, "cache_clear")]
    with pytest.MonkeyPatch.context() as patch:
        if is_quick(request.config):
            patch.setattr(campaign, "ROW_FORMATS", {name: ROW_FORMATS[name] for name in FEW})
            for each in known:
                each.cache_clear()
        yield
    for each in known:
        each.cache_clear()


def test_every_unit_has_mutants_and_every_specification_a_proof_in_each_format() -> None:
    found = checks()
    assert len({each.command for each in found}) == len(found)
    assert {x.unit for x in found if x.kind is Kind.MUTATE} == set(UNITS)
    proved = {(x.unit, x.format) for x in found if x.kind is Kind.PROVE and TARGET not in x.command}
    for unit in SPECIFICATIONS:
        for name in campaign.formats_of(unit):
            assert ((unit, name) in proved) == (not unproved(unit, name))
    assert set(campaign.formats_of("decoder")) == set(campaign.ROW_FORMATS)
    assert not unproved("decoder", "nvfp4")
    assert "not over 7" in unproved("decoder", "if4")


def test_shares_are_the_whole_and_an_unknown_text_is_refused() -> None:
    found = checks()
    parts = [choose(found, [], Share(number, 7)) for number in range(1, 8)]
    assert sorted(x.command for part in parts for x in part) == sorted(x.command for x in found)
    some = choose(found, ["mutate lfsr", "prove expander"], Share())
    assert {each.unit for each in some} == {"lfsr", "expander"}
    with pytest.raises(ValueError, match="no check has 'fp5' in its command"):
        choose(found, ["fp5"], Share())


@pytest.mark.optimised
def test_a_check_that_passed_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.json"
    found = run_check(QUICK, 300)
    assert found.passed
    assert found.counts["killed"] + found.counts["equal"] == 20
    Kept(state).put(QUICK, found)
    assert Kept(state).get(QUICK) == found
    other = key_of(QUICK)
    assert key_of(replace(QUICK, options={**QUICK.options, "mutants": 30})) == other
    assert key_of(replace(QUICK, options={**QUICK.options, "block": 32})) != other
    monkeypatch.setattr(campaign_results, "code_digest", lambda *modules: "other code")
    assert Kept(state).get(QUICK) is None


@pytest.mark.parametrize("kind", [Kind.PROVE, Kind.MUTATE])
def test_a_result_depends_on_the_proof_of_its_own_unit(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change in another's proof leaves it; one in its own, or in the solver, does not."""
    check = replace(QUICK, kind=kind)
    changed: list[str] = []

    def digest(modules: Any, packages: Any, without: Any) -> str:
        return " ".join(set(imported(modules, packages, without)) & set(changed))

    monkeypatch.setattr(campaign_results, "code_digest", digest)
    before = key_of(check)
    others = ("proof.decoder", "proof.encoder", "proof.components", "proof.specifications")
    for module in (*others, "hw.units.axis"):
        changed[:] = [f"axs6.{module}"]
        assert key_of(check) == before
    for module in ("expander", "solver", "prove"):
        changed[:] = [f"axs6.proof.{module}"]
        assert key_of(check) != before
    part = Check(Kind.PROVE, "fp32_add", "", {})
    changed[:] = []
    before = key_of(part)
    for module in ("hw.units.hard_sums", "proof.terms_join"):
        changed[:] = [f"axs6.{module}"]
        assert key_of(part) == before
    for module in ("proof.components", "proof.fp32", "hw.fp32.add"):
        changed[:] = [f"axs6.{module}"]
        assert key_of(part) != before


def test_mutants_that_stay_open_do_not_pass_and_are_not_asked_again(tmp_path: Path) -> None:
    counts = {"killed": 500, "equal": 8, "different": 0, "open": 3}
    left = Result(QUICK.command, QUICK.kind, "expander", "axs6", False, 9.0, "", counts)
    alive = replace(left, counts={**counts, "different": 1})
    for name, each, kept in (("open", left, left), ("alive", alive, None)):
        Kept(tmp_path / name).put(QUICK, each)
        assert Kept(tmp_path / name).get(QUICK) == kept
    assert str(left).endswith("500 killed, 8 equal, 0 different, 3 open (9.0 s)")


def quick(kind: Kind) -> list[Check]:
    """Checks that take some seconds: blocks of few bits under scales that are powers of two."""
    units = ("block_dot", "decoder", "expander")
    found = []
    for each in checks():
        fmt = block_format(each.format) if each.format else None
        small = fmt and not fmt.outer and fmt.element.width <= 6 and len(fmt.levels) == 1
        if each.kind is kind and each.unit in units and small and "target" not in each.options:
            found.append(each)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind.PROVE, Kind.MUTATE])
def test_a_check_of_this_day_passes(kind: Kind) -> None:
    """Another one each day, of those that take some seconds; `axs6 verify` runs all."""
    found = quick(kind)
    assert len(found) > 10
    chosen = found[date.today().toordinal() % len(found)]
    result = run_check(chosen, 300)
    assert result.passed, str(result)


def test_a_check_that_fails_says_why_and_is_not_kept(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    refused, late = run_check(WRONG, 300), run_check(QUICK, 0.2)
    assert not refused.passed
    assert "block must be" in refused.said
    assert late.said == "not finished within 0.2 s"
    for check, each in ((WRONG, refused), (QUICK, late)):
        Kept(state).put(check, each)
    assert not state.exists()


def test_the_command_exits_with_1_where_a_check_fails(
    main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.json"
    monkeypatch.setattr(campaign, "checks", lambda: [WRONG])
    result = main("verify", "--state", str(tmp_path / "state.json"), "--json", str(report))
    assert result.returncode == 1
    assert "FAIL axs6 prove expander --block 7: " in result.stdout
    assert "0 of 1 checks passed" in result.stdout
    (entry,) = json.loads(report.read_text())
    assert not entry["passed"]


def test_a_report_has_what_is_kept_and_runs_nothing(
    main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.json"
    counts = {"killed": 19, "equal": 1, "different": 0, "open": 0}
    result = Result(QUICK.command, "mutate", "expander", "axs6", True, 1.5, "", counts)
    Kept(state).put(QUICK, result)
    monkeypatch.setattr(campaign, "checks", lambda: [WRONG, QUICK])
    found = main("verify", "--state", str(state), "--report")
    assert found.returncode == 0
    assert "19 killed, 1 equal, 0 different, 0 open (1.5 s) in an earlier run" in found.stdout
    assert "1 of 1 checks passed" in found.stdout
    assert "19 of 19 mutants that differ killed, 1 without a result" in found.stdout


def test_a_changed_state_is_refused(main: Any, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text("{}")
    result = main("verify", "--only", "mutate lfsr", "--state", str(state))
    assert result.returncode == 2
    assert "is not a state of axs6 verify: delete it, or name another file" in result.stderr
