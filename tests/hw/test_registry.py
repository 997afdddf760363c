import inspect
import itertools
from typing import Any

import pytest
from amaranth.lib import stream

from axs6.hw.core.layouts import fields
from axs6.hw.registry import UNITS, find

CASES = [
    (name, combination) for name, unit in UNITS.items() for combination in unit.combinations({})
]


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_every_choice_of_parameters_builds(name: str, parameters: dict[str, Any]) -> None:
    without: Any = find(name).build(**parameters)
    component: Any = find(name).build(**parameters, stages=2)
    assert component.latency - without.latency == 2
    assert component.interval == 1
    assert isinstance(component.signature.members["i"].signature, stream.Signature)


@pytest.mark.parametrize("name", UNITS)
def test_choices_and_defaults_agree(name: str) -> None:
    unit = UNITS[name]
    assert set(unit.choices({})) <= set(unit.defaults)
    for parameter, values in unit.choices({}).items():
        assert unit.defaults[parameter] in values
    assert inspect.getdoc(unit.component)


def test_any_two_choices_meet_in_a_combination() -> None:
    for unit in UNITS.values():
        combinations = unit.combinations({})
        assert combinations[0] == {name: unit.defaults[name] for name in unit.choices({})}
        for names in itertools.combinations(unit.choices({}), 2):
            met = {tuple(each[name] for name in names) for each in combinations}
            assert met == set(itertools.product(*(unit.choices({})[name] for name in names)))
        for name, values in unit.choices({}).items():
            assert {each[name] for each in combinations} == set(values)
            given = unit.combinations({name: values[-1]})
            assert {each[name] for each in given} == {values[-1]}


def test_an_unknown_unit_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unit must be one of block_dot, .*, not 'divider'"):
        find("divider")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("block_dot", {"dtype": "fp32"}, "block_dot has no parameter 'dtype'; it has block"),
        ("encoder", {"block": 12}, "block must be one of 8, 16, 32, not 12"),
        ("encoder", {"dtype": "fp8"}, "dtype must be one of fp32, bf16, fp16, not 'fp8'"),
        ("decoder", {"dtype": "fp16"}, "dtype must be one of fp32, bf16, not 'fp16'"),
        (
            "encoder",
            {"rounding": "up"},
            "rounding must be one of nearest, toward_zero, stochastic, not 'up'",
        ),
        ("encoder", {"random_bits": 8}, "random_bits is for rounding stochastic, not nearest"),
        ("encoder", {"stages": 10}, "stages must be an integer from 0 to 9, not 10"),
        ("decoder", {"stages": 5}, "stages must be an integer from 0 to 4, not 5"),
        ("block_dot", {"stages": 12}, "stages must be an integer from 0 to 11, not 12"),
        ("dot", {"stages": 28}, "stages must be an integer from 0 to 27, not 28"),
        ("dot", {"interleave": 15}, "interleave must be an integer from 1 to 14, not 15"),
        ("dot", {"interleave": True}, "interleave must be an integer from 1 to 14, not True"),
        ("dot", {"format": "mx9xmx6xmx9"}, "has one format or two, not 3"),
        ("block_dot", {"format": "mx9xmx9xmx9"}, "has one format or two, not 3"),
        ("axis_dot", {"format": "mx9xmx6xmx9"}, "has one format or two, not 3"),
        ("matmul", {"rows": 0}, "rows must be an integer from 1 to 64, not 0"),
        ("matmul", {"columns": 65}, "columns must be an integer from 1 to 64, not 65"),
        ("matmul", {"columns": 2.0}, "columns must be an integer from 1 to 64, not 2.0"),
    ],
)
def test_a_wrong_parameter_is_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find(name).build(**parameters)


def test_fields_cover_the_payload_without_gaps() -> None:
    for unit in UNITS.values():
        component: Any = unit.build(block=8)
        for port in (component.i, component.o):
            layout = port.payload.shape()
            end = 0
            for field in fields(layout):
                assert field.offset == end
                end += field.width * field.count
            assert end == layout.size
