import pytest

from axs6.hw.pipeline import deepest, place_registers
from axs6.hw.reduction import split_stages


def test_no_stages_means_no_registers() -> None:
    assert place_registers([5, 5, 5], 0) == ()


def test_the_first_rank_is_at_the_output() -> None:
    assert place_registers([5, 1, 1], 1) == (2,)


@pytest.mark.parametrize(
    ("levels", "stages", "places"),
    [
        ([1, 1, 10, 1], 2, (1, 3)),
        ([10, 1, 1, 1], 2, (0, 3)),
        ([4, 4, 4, 4], 2, (1, 3)),
        ([4, 4, 4, 4], 4, (0, 1, 2, 3)),
        ([4, 4], 3, (-1, 0, 1)),
    ],
)
def test_ranks_halve_the_deepest_stretch(
    levels: list[int], stages: int, places: tuple[int, ...]
) -> None:
    assert place_registers(levels, stages) == places


def test_more_ranks_never_deepen_the_deepest_stretch() -> None:
    levels = [5, 30, 14, 10, 7]
    depths = [deepest(levels, place_registers(levels, n)) for n in range(7)]
    assert depths == sorted(depths, reverse=True)
    assert depths[0] == sum(levels)
    assert depths[-1] == max(levels)


@pytest.mark.parametrize("stages", [-1, 4, 1.0, "2"])
def test_stages_must_fit(stages: object) -> None:
    with pytest.raises(ValueError, match=r"stages must be an integer from 0 to 3, not"):
        place_registers([1, 1], stages)  # type: ignore[arg-type]


def test_stages_are_split_where_the_logic_is_deepest() -> None:
    assert split_stages([10, 10], [1], 1) == (1, 0)
    assert split_stages([10], [30, 30], 2) == (0, 2)
    assert sum(split_stages([10, 10, 10], [30, 30], 5)) == 5
    with pytest.raises(ValueError, match="stages must be an integer from 0 to 5, not 6"):
        split_stages([1, 1], [1], 6)
