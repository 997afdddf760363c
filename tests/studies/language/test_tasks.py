"""The file of finished parts."""

from pathlib import Path

from axs6.studies.language.similarity import Group
from axs6.studies.language.tasks import KeptResults


def group(number: int) -> Group:
    return Group(f"key {number}", "mxfp4", number, 8, 0.5, 3, {})


def test_two_studies_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    first, second = KeptResults(path, Group), KeptResults(path, Group)
    for number in range(6):
        (first if number % 3 else second).add(group(number))
    again = KeptResults(path, Group)
    assert [again.get(f"key {number}") for number in range(6)] == [*map(group, range(6))]


def test_what_another_left_of_a_line_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    kept = KeptResults(path, Group)
    kept.add(group(0))
    whole = path.read_text()
    path.write_text(whole + whole.replace("key 0", "key 9") + whole[:30])
    kept.add(group(1))
    again = KeptResults(path, Group)
    assert again.get("key 9") is not None
    assert again.get("key 1") == group(1)
    assert len(path.read_text().splitlines()) == 3
