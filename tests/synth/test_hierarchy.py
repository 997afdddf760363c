import pytest

from axs6.synth.hierarchy import InstanceGroup, Module, all_cells, groups, pattern

LEAF = Module({"INV": 2}, {})
PAIR = Module({"NAND2": 1}, {"u0": "leaf", "u1": "leaf", "other": "leaf"})
TOP = Module({}, {"pair10": "pair", "pair2": "pair", "alone": "leaf"})
MODULES = {"top": TOP, "pair": PAIR, "leaf": LEAF}


def test_all_cells_adds_what_is_below() -> None:
    assert all_cells(MODULES, "pair") == {"NAND2": 1, "INV": 6}
    assert all_cells(MODULES, "top") == {"NAND2": 2, "INV": 14}


def test_groups_multiply_instances() -> None:
    assert list(groups(MODULES, "top")) == [
        InstanceGroup("alone", "leaf", 1),
        InstanceGroup("pair[2,10]", "pair", 2),
        InstanceGroup("pair[2,10]/other", "leaf", 2),
        InstanceGroup("pair[2,10]/u[0-1]", "leaf", 4),
    ]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["adder"], "adder"),
        (["lane7"], "lane7"),
        (["lane3", "lane0", "lane1", "lane7"], "lane[0-1,3,7]"),
        (["r0c0", "r0c1", "r1c0", "r1c1"], "r[0-1]c[0-1]"),
        (["fp32_2", "fp32_3"], "fp32_[2-3]"),
    ],
)
def test_pattern(names: list[str], text: str) -> None:
    assert pattern(names) == text
