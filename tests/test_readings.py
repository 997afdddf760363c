"""How figures are read from what commands say, and how the memory of models is counted."""

from typing import Any

import numpy as np
import reading_language
import readings
import torch
from figure import CommandRun
from language import held
from torch import nn

from axs6.torch import convert


def test_encoders_that_choose_are_compared_with_the_plain_one_of_their_format() -> None:
    def run(unit: str, area: float, **parameters: Any) -> CommandRun:
        found = {
            "parameters": parameters,
            "total": {"figures": {"area": area}},
            "timing": {"delay_ps": 1000.4},
            "energy": {"per_operation": 12.34},
        }
        return CommandRun(f"axs6 area {unit}", [], [found])

    runs = [
        run("encoder", 200.0, format="mxfp4", block=32),
        run("choice_encoder", 500.0, format="mxfp4_mse", block=32),
        run("hadamard", 90.0, block=32),
    ]
    assert readings.encoders(runs)["table"]["rows"] == [
        ["encoder", "mxfp4", 200, "-", 1000, 12.3],
        ["choice_encoder", "mxfp4_mse", 500, "150 %", 1000, 12.3],
        ["hadamard", "blocks of 32", 90, "-", 1000, 12.3],
    ]


def test_places_of_a_name_are_one_row() -> None:
    places = [
        {"place": f"layers.{layer}.{name}", "weights": weights, "ratio": ratio}
        for layer, name, weights, ratio in (
            (1, "up", 8, 1.5),
            (0, "attention", 0, 1.25),
            (0, "up", 8, 1.125),
        )
    ]
    found = reading_language.sensitivity([CommandRun("", [], {"places": places})])
    assert found["table"]["rows"] == [
        ["up", 2, 16, "1.688", "70 %", "1.5000", "`layers.1.up`"],
        ["attention", 1, 0, "1.250", "30 %", "1.2500", "`layers.0.attention`"],
    ]
    assert found["values"] == {"places": 3, "product": 2.11, "first_ten": 100}


def test_memory_counts_every_buffer_once_and_packed_weights_too() -> None:
    layer = nn.Linear(64, 32, bias=False)
    model = nn.Sequential(layer, nn.Linear(32, 64, bias=False))
    assert held(model) == 2 * 64 * 32 * 4
    model.append(layer)
    model.register_buffer("rows", layer.weight.detach()[:16])
    assert held(model) == 2 * 64 * 32 * 4
    model.table = np.zeros(100, np.uint8)[10:]  # type: ignore[assignment]
    assert held(model) == 2 * 64 * 32 * 4 + 100
    converted = convert(layer, format="mxint8")
    before = held(converted)
    with torch.no_grad():
        converted(torch.ones(1, 64))
    assert held(converted) - before > 64 * 32
