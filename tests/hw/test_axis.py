"""Units on AXI4-Stream: their ports, their parameters and what the marks cost."""

from typing import Any

import pytest

from axs6.golden.formats import ROW_FORMATS, block_format
from axs6.golden.pack import packed_bytes
from axs6.hw.registry import ALL_UNITS, BUS_UNITS, UNITS, find, find_with_streams
from axs6.hw.verilog import describe_streams

BYTES = {8: 8, 16: 14, 32: 26}


def bus(unit: str, name: str, **parameters: Any) -> dict[str, Any]:
    streams = describe_streams(find(unit).build(**parameters))
    return next(each for each in streams if each["name"] == name)


@pytest.mark.parametrize("name", BUS_UNITS)
def test_every_choice_of_parameters_builds(name: str) -> None:
    unit = BUS_UNITS[name]
    others = {"stages", "format", "accumulator"}
    assert set(unit.choices({})) | set(unit.samples) == set(unit.defaults) - others
    for parameters in unit.combinations({"block": 8}):
        plain, staged = (unit.build(**parameters, stages=stages) for stages in (0, 2))
        assert staged.latency == plain.latency + 2  # type: ignore[attr-defined]
        assert staged.interval == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("block", BYTES)
def test_beats_are_whole_blocks(block: int) -> None:
    values = {"fp32": 32, "bf16": 16, "fp16": 16}
    for fmt, width in values.items():
        assert bus("axis_encoder", "s_axis", block=block, dtype=fmt)["width"] == width * block
    for unit, name in (
        ("axis_encoder", "m_axis"),
        ("axis_decoder", "s_axis"),
        ("axis_dot", "s_axis_a"),
        ("axis_dot", "s_axis_b"),
    ):
        assert bus(unit, name, block=block)["width"] == 8 * BYTES[block]
        assert bus(unit, name, block=block, align=32)["width"] == 256
        assert bus(unit, name, block=block, align=16)["width"] == 8 * -(-BYTES[block] // 16) * 16
    assert bus("axis_dot", "m_axis", block=block)["width"] == 32


@pytest.mark.parametrize("name", ROW_FORMATS)
def test_beats_are_whole_blocks_in_every_format(name: str) -> None:
    fmt = block_format(name)
    outer = sum(level.scale.bits for level in fmt.outer) + (0 if fmt.element.signed else 8)
    for align in (1, 32):
        bits = outer + 8 * packed_bytes(name)
        width = -(-bits // (8 * align)) * 8 * align
        assert bus("axis_decoder", "s_axis", format=name, align=align)["width"] == width


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"format": "uint8"}, "uint8 has zero points, for which dot products have no hardware"),
        ({"format": "axs6xmxfp4"}, "packed blocks of axs6 can only be multiplied with each other"),
        (
            {"format": "mx9", "accumulator": "paper"},
            "packed blocks need steps of one block, and paper has others",
        ),
    ],
)
def test_dot_products_that_a_bus_cannot_carry_are_refused(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        find("axis_dot").build(**parameters)


def test_ports_have_the_names_that_users_expect() -> None:
    assert [each["name"] for each in describe_streams(find("axis_dot").build(block=8))] == [
        "s_axis_a",
        "s_axis_b",
        "m_axis",
    ]
    described = bus("axis_dot", "s_axis_a", block=8)
    assert described["direction"] == "input"
    assert {role: described[role] for role in ("valid", "ready", "payload", "last", "user")} == {
        "valid": "s_axis_a_tvalid",
        "ready": "s_axis_a_tready",
        "payload": "s_axis_a_tdata",
        "last": "s_axis_a_tlast",
        "user": "s_axis_a_tuser",
    }


@pytest.mark.parametrize(("name", "more"), [("encoder", {}), ("decoder", {"blocks": "packed"})])
def test_marks_take_two_bits_of_each_rank(name: str, more: dict[str, Any]) -> None:
    plain: Any = UNITS[name].build(block=8, stages=3, **more)
    on_bus: Any = BUS_UNITS[f"axis_{name}"].build(block=8, stages=3)
    assert on_bus.flip_flops == plain.flip_flops + 2 * 3
    assert on_bus.most_stages == plain.most_stages


@pytest.mark.parametrize("align", [0, -1, 2.0])
def test_a_wrong_alignment_is_refused(align: Any) -> None:
    for name in BUS_UNITS:
        with pytest.raises(
            ValueError, match=f"align must be an integer from 1 to 4096, not {align}"
        ):
            find(name).build(align=align)


def test_units_with_streams_are_the_others() -> None:
    assert {**UNITS, **BUS_UNITS} == ALL_UNITS
    assert find_with_streams("dot") is UNITS["dot"]
    with pytest.raises(
        ValueError, match="axis_dot is on AXI4-Stream; unit must be one of block_dot"
    ):
        find_with_streams("axis_dot")
