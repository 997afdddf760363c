"""`axs6 list --accumulators` as a user meets it."""

import json

from axs6.golden.accumulator import ACCUMULATORS, accumulator


def test_every_named_accumulator_is_listed(main, tmp_path):
    path = tmp_path / "accumulators.json"
    result = main("list", "--accumulators", "--json", str(path))
    assert result.returncode == 0
    assert "reduction=16 fraction=24" in result.stdout
    rows = json.loads(path.read_text())
    assert [row["accumulator"] for row in rows] == list(ACCUMULATORS)
    for row in rows:
        name = row.pop("accumulator")
        text = ",".join(["fp32", *(f"{field}={value}" for field, value in row.items())])
        assert accumulator(text) == ACCUMULATORS[name]


def test_one_list_at_a_time(main):
    result = main("list", "--accumulators", "--formats")
    assert result.returncode == 2
    assert "list takes one of --formats, --accumulators, not 2" in result.stderr
