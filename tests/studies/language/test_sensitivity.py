"""Which places of a language model a format hurts."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden.formats import block_format
from axs6.studies.language.linear import linear_layers, shared_copy
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.perplexity import study_perplexity
from axs6.studies.language.request import Setting
from axs6.studies.language.sensitivity import Place, Sensitivity, study_sensitivity
from axs6.studies.language.tasks import KeptResults, TaskOptions
from axs6.studies.language.windows import Window
from axs6.torch import Policy, convert, fake_quantise

Cli = Callable[..., Any]

LAYER = "model.layers.1.mlp.gate_proj"
ATTENTION = "model.layers.0.self_attn"


@pytest.fixture(scope="module")
def study(folder: Path, model: LanguageModel, tokens: Tensor) -> Sensitivity:
    return study_sensitivity("small", (folder, None), model, tokens[:2], "mxfp4", TaskOptions())


def scores(module: nn.Module, tokens: Tensor) -> Tensor:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        found = torch.cat([module(x[None]).logits for x in tokens])
    torch.set_num_threads(threads)
    return found


def check(place: Place, converted: nn.Module, model: LanguageModel, tokens: Tensor) -> None:
    """Ratio and QSNR are those of a converted model."""
    ours, plain = (scores(each, tokens) for each in (converted, model.module))
    costs = [
        nn.functional.cross_entropy(x[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()
        for x in (ours, plain)
    ]
    assert place.ratio == pytest.approx(math.exp(costs[0] - costs[1]), rel=1e-5)
    noise = (ours - plain).double().square().sum() / plain.double().square().sum()
    assert place.qsnr_db == pytest.approx(-10 * math.log10(float(noise)), rel=1e-9)


def test_harms_are_those_of_single_conversions(
    study: Sensitivity, model: LanguageModel, tokens: Tensor
) -> None:
    layers = linear_layers(model.module)
    attention = [f"model.layers.{i}.self_attn" for i in (0, 1)]
    by_name = {each.place: each for each in study.places}
    assert set(by_name) == {*attention, *layers} - {"lm_head"}
    assert [each.ratio for each in study.places] == sorted(
        (each.ratio for each in study.places), reverse=True
    )
    for name in (LAYER, ATTENTION):
        others = {*layers, *attention} - {name}
        # Modules that are left alone are left with all that they contain.
        within = {x for x in others if any(x.startswith(f"{y}.") for y in {*attention} - {name})}
        rules = [{"name": each, "format": "fp32"} for each in others - within]
        policy = {"format": "mxfp4", "layers": rules}
        check(by_name[name], convert(model.module, policy=policy), model, tokens[:2])
    assert by_name[LAYER].weights == 64 * 96
    assert by_name[ATTENTION].weights == 0


@pytest.mark.parametrize("part", ["weights", "activations"])
def test_one_part_of_a_layer(folder: Path, model: LanguageModel, tokens: Tensor, part: str) -> None:
    run = TaskOptions()
    found = study_sensitivity("small", (folder, None), model, tokens[:1], "mxfp4", run, part=part)
    by_name = {each.place: each for each in found.places}
    assert (ATTENTION in by_name) == (part == "activations")
    copied = shared_copy(model.module)
    layer = linear_layers(copied)[LAYER]
    if part == "weights":
        layer.weight = nn.Parameter(fake_quantise(layer.weight.detach(), "mxfp4"))
    else:
        layer.register_forward_pre_hook(lambda _, x: (fake_quantise(x[0], "mxfp4"),))
    check(by_name[LAYER], copied, model, tokens[:1])


def bits(study: Sensitivity, policy: Policy, wide: str) -> float:
    """Bits a weight over all places."""
    chosen = {rule.value for rule in policy.rules if wide in rule.settings.values()}
    total = sum(
        place.weights
        * float(block_format(wide if place.place in chosen else "mxfp4").bits_a_value[0])
        for place in study.places
    )
    return total / sum(place.weights for place in study.places)


def test_a_policy_keeps_to_its_budget(study: Sensitivity) -> None:
    found = [study.policy("mx9", budget) for budget in (4.25, 5, 6.5, 9)]
    sizes = [len(policy.rules) for policy in found]
    assert sizes[0] == 1  # the head
    assert sizes == sorted(sizes)
    assert [
        bits(study, policy, "mx9") <= budget
        for policy, budget in zip(found, (4.25, 5, 6.5, 9), strict=True)
    ] == [True] * 4
    harmful = {place.place for place in study.places if place.weights and place.ratio > 1}
    assert {rule.value for rule in found[-1].rules} == {*harmful, "lm_head"}

    # What is taken first does most harm for its bits, and what is left does not fit.
    def worth(place: Place) -> float:
        return math.log(place.ratio) / place.weights

    taken = [rule.value for rule in found[1].rules[1:]]
    some = {place.place: place for place in study.places if place.place in harmful}
    assert taken
    assert taken[0] == max(some, key=lambda name: worth(some[name]))
    assert [worth(some[name]) for name in taken] == sorted(
        (worth(some[name]) for name in taken), reverse=True
    )
    weights = sum(place.weights for place in study.places)
    free = (5 - bits(study, found[1], "mx9")) * weights
    assert all(some[name].weights * (9 - 4.25) > free for name in harmful - set(taken))


def test_the_command_writes_a_policy_that_gives_the_model(
    main: Cli, folder: Path, tmp_path: Path, model: LanguageModel, tokens: Tensor
) -> None:
    file, data, table = (tmp_path / name for name in ("p.toml", "runs.jsonl", "t.csv"))
    arguments = ("study", "sensitivity", str(folder), "--format", "mxfp4", "--tokens", "32")
    more = ("--window", "32", "--wide", "mx9", "--bits", "5", "-o", str(file))
    paths = ("--data", str(data), "--csv", str(table), "--json", "-")
    figures = json.loads(main(*arguments, *more, *paths).succeeded())
    assert len(table.read_text().splitlines()) == 1 + len(figures["places"]) == 17
    policy = Policy.read(file)
    assert policy.settings == {"format": "mxfp4"}
    text = file.read_text()
    # The layer that scores tokens is left alone by the policy, and by the study just once.
    found = study_perplexity(
        *("small", (folder, None), model, tokens[:1]),
        [Setting("mxfp4", "mxfp4", policy=text)],
        TaskOptions(KeptResults(data, Window)),
    )
    converted = convert(model.module, policy=policy)
    assert set(found.rows[1].unconverted) == {"lm_head.mm"}
    cost = nn.functional.cross_entropy(scores(converted, tokens[:1])[0, :-1], tokens[0, 1:])
    assert math.log(found.rows[1].perplexity) == pytest.approx(cost.item(), rel=1e-6)
    # FP32's window comes from the file that the command kept.
    assert len(data.read_text().splitlines()) == 16 + 1 + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "inputs"], "part must be one of weights, activations, both, not 'inputs'"),
        (["--wide", "mx9"], "a policy needs --wide, --bits and -o together"),
        (["--wide", "mx4", "--bits", "5", "-o", "{out}"], "wide must have more bits than mxfp4's"),
        (["--wide", "mx9", "--bits", "4", "-o", "{out}"], "bits must be at least mxfp4's 4.25"),
        (
            ["--wide", "mx9", "--bits", "5", "--part", "activations", "-o", "{out}"],
            "needs --part weights or both, not activations",
        ),
        (
            ["--wide", "mx9", "--bits", "5", "--part", "weights", "-o", "{out}"],
            "a and b must have levels of the same groups in a block",
        ),
        (["--tokens", "10"], "tokens must be a window of 512 or more, not 10"),
    ],
)
def test_bad_input(
    main: Cli, folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "policy.toml"
    given = (each.format(out=out) for each in arguments)
    done = main("study", "sensitivity", str(folder), "--format", "mxfp4", *given)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.splitlines()[-1].startswith("axs6:")
    assert not out.exists()
