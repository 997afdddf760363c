"""Perplexity of language models."""

import copy
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from axs6.golden import decode, encode
from axs6.studies.language.models import LanguageModel, load
from axs6.studies.language.perplexity import Study, study_perplexity
from axs6.studies.language.quantised import quantised, quantised_cache
from axs6.studies.language.request import Setting
from axs6.studies.language.tasks import KeptResults, TaskOptions
from axs6.studies.language.texts import windows
from axs6.studies.language.windows import Window
from axs6.torch import convert

Cli = Callable[..., Any]

SIZE = 32


def study(folder: Path, model: LanguageModel, tokens: Tensor, *texts: str, **options: Any) -> Study:
    settings = [Setting.of(text) for text in texts]
    return study_perplexity(
        "small", (folder, None), model, tokens, settings, TaskOptions(**options)
    )


def nats(module: nn.Module, tokens: Tensor) -> float:
    """The mean cost of a token, in one thread as the study has it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        costs = [
            nn.functional.cross_entropy(module(x[None]).logits[0, :-1], x[1:], reduction="none")
            for x in tokens
        ]
    torch.set_num_threads(threads)
    return math.fsum(float(each.double().sum()) for each in costs) / sum(map(len, costs))


def test_a_model_in_another_folder_is_the_same(
    folder: Path, model: LanguageModel, tmp_path: Path
) -> None:
    moved = shutil.copytree(folder, tmp_path / "moved")
    assert load(moved).digest == model.digest


def test_rows_are_what_models_cost(folder: Path, model: LanguageModel, tokens: Tensor) -> None:
    found = study(folder, model, tokens, "mxfp4", "mxfp8_e4m3xmxfp4", "mx6xfp32", "mx6xbf16")
    assert (found.windows, found.window) == tokens.shape
    head = ["lm_head"]
    plain, bf16 = (copy.deepcopy(model.module) for _ in range(2))
    for each in (plain, bf16):
        for name, module in each.named_modules():
            if isinstance(module, nn.Linear) and name not in head:
                values = decode(encode(module.weight.detach().numpy(), "mx6"))
                module.weight.data = torch.from_numpy(values)
    for name, module in bf16.named_modules():
        if isinstance(module, nn.Linear) and name not in head:
            module.register_forward_pre_hook(lambda _, x: (x[0].bfloat16().float(),))
    others = [
        model.module,
        convert(model.module, format="mxfp4", exclude=head),
        convert(model.module, weights="mxfp8_e4m3", activations="mxfp4", exclude=head),
        plain,
        bf16,
    ]
    expected = [nats(each, tokens) for each in others]
    assert [math.log(row.perplexity) for row in found.rows] == pytest.approx(expected, abs=1e-12)
    assert len({row.perplexity for row in found.rows}) == len(others)
    assert [row.bits for row in found.rows] == [32, 4.25, 8.25, 6, 6]


def test_scales_are_chosen_in_both_operands() -> None:
    for text, name in (
        ("nvfp4", "nvfp4_mse"),
        ("mxfp4xbf16", "mxfp4_msexbf16"),
        ("nvfp4xmxfp4", "nvfp4_msexmxfp4_mse"),
        ("fp32", "fp32"),
    ):
        assert str(Setting.of(text, "mse")) == str(Setting.of(name)) == name
    assert str(Setting.of("nvfp4_four-over-sixxnvfp4")) == "nvfp4_four-over-sixxnvfp4"


def test_errors_are_those_of_windows(folder: Path, model: LanguageModel, tokens: Tensor) -> None:
    found = study(folder, model, tokens, "mxfp4")
    each = [study(folder, model, x[None], "mxfp4") for x in tokens]
    logs = np.log([[row.perplexity for row in one.rows] for one in each])
    assert all(row.error is None for one in each for row in one.rows)
    for row, values, others in zip(found.rows, logs.T, (logs[:, 0], logs[:, 0]), strict=True):
        error = row.perplexity * values.std(ddof=1) / math.sqrt(3)
        assert row.error == pytest.approx(error)
        ratio = (values - others).std(ddof=1) / math.sqrt(3)
        assert row.ratio_error == pytest.approx(row.ratio * ratio)


def test_what_is_left_in_fp32_is_named(folder: Path, model: LanguageModel, tokens: Tensor) -> None:
    found = study(folder, model, tokens[:1], "mxfp4")
    everything = found.rows[0].unconverted
    linear = sum(
        each.weight.numel() for each in model.module.modules() if isinstance(each, nn.Linear)
    )
    attention = 2 * 2 * 4 * SIZE * SIZE * 16
    assert sum(everything.values()) == SIZE * linear + attention
    assert found.rows[1].unconverted == {"lm_head.mm": SIZE * 300 * 64}
    (line,) = found.left_to_torch()
    assert line.startswith("in FP32 in mxfp4: lm_head.mm (")
    head = Setting("mxfp4", "mxfp4", head=True)
    whole = study_perplexity("small", (folder, None), model, tokens[:1], [head], TaskOptions())
    assert whole.rows[1].unconverted == {}


def test_a_head_and_embeddings_are_apart(model: LanguageModel) -> None:
    table = model.module.get_submodule("model.embed_tokens")
    assert table.weight is model.module.lm_head.weight  # type: ignore[union-attr]
    for activations in ("mx6", "fp32"):
        setting = Setting("mx6", activations, embeddings=True)
        made: Any = quantised(model, setting)
        values = decode(encode(table.weight.detach().numpy(), "mx6"))  # type: ignore[operator]
        assert np.array_equal(made.model.embed_tokens.weight.detach().numpy(), values)
        assert torch.equal(made.lm_head.weight, model.module.lm_head.weight)  # type: ignore


def test_keys_and_values_are_kept_in_blocks(model: LanguageModel, tokens: Tensor) -> None:
    cache, plain = quantised_cache("mxfp4"), quantised_cache("mx9")
    with torch.no_grad():
        for kept in (cache, plain):
            model.module(tokens[:1], past_key_values=kept, use_cache=True)
    keys = cache.layers[0].keys
    assert np.array_equal(keys, decode(encode(keys.numpy(), "mxfp4")))
    assert not torch.equal(keys, plain.layers[0].keys)
    # Token by token gives what the whole text gives.
    slow = quantised_cache("mxfp4")
    with torch.no_grad():
        for token in tokens[0]:
            model.module(token.reshape(1, 1), past_key_values=slow, use_cache=True)
    assert torch.allclose(slow.layers[0].keys, keys)


def test_a_stopped_study_goes_on_to_the_same_digits(
    folder: Path, model: LanguageModel, tokens: Tensor, tmp_path: Path
) -> None:
    data = tmp_path / "windows.jsonl"
    whole = study(folder, model, tokens, "mxfp4", kept=KeptResults(data, Window))
    lines = data.read_text().splitlines(keepends=True)
    assert len(lines) == 6
    data.write_text("".join(lines[:4]) + lines[4][:20])
    calls: list[tuple[str, int, int]] = []
    again = study(
        *(folder, model, tokens, "mxfp4"),
        kept=KeptResults(data, Window),
        progress=lambda setting, done, total, left: calls.append((setting, done, total)),
    )
    assert calls == [("mxfp4", 5, 6), ("mxfp4", 6, 6)]
    for one, other in zip(whole.rows, again.rows, strict=True):
        assert (one.perplexity, one.error) == (other.perplexity, other.error)
    assert [json.loads(x)["key"] for x in data.read_text().splitlines()] == [
        json.loads(x)["key"] for x in lines
    ]
    # Another text, another model or another setting is not what was kept.
    other = study(folder, model, (tokens + 1) % 300, "mx6", kept=KeptResults(data, Window))
    assert other.rows[0].perplexity != whole.rows[0].perplexity
    assert len(data.read_text().splitlines()) == 12
    data.write_text("{}\n")
    with pytest.raises(ValueError, match="line 1: it must be a window"):
        KeptResults(data, Window)


@pytest.mark.slow  # each process imports torch and transformers
def test_processes_come_to_the_same_digits(
    folder: Path, model: LanguageModel, tokens: Tensor
) -> None:
    here = study(folder, model, tokens, "mxfp4")
    there = study(folder, model, tokens, "mxfp4", jobs=2)
    assert [row.perplexity for row in here.rows] == [row.perplexity for row in there.rows]


def test_windows_on_a_cluster_come_to_the_same_digits(
    folder: Path, model: LanguageModel, tokens: Tensor
) -> None:
    distributed = pytest.importorskip("distributed")
    here = study(folder, model, tokens[:2], "mxfp4")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with distributed.LocalCluster(**options, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        there = study(folder, model, tokens[:2], "mxfp4", scheduler=address)
    assert [row.perplexity for row in here.rows] == [row.perplexity for row in there.rows]


ODD = """
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

class Distances(torch.nn.Module):
    def forward(self, x):
        return torch.cdist(x, x)

class Odd(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.distances = model, Distances()
    def forward(self, tokens):
        found = self.model(tokens, output_hidden_states=True)
        return found.logits + 0 * self.distances(found.hidden_states[-1]).sum()

def make():
    model = AutoModelForCausalLM.from_pretrained({folder!r})
    return Odd(model), AutoTokenizer.from_pretrained({folder!r})
"""


@pytest.mark.filterwarnings("ignore:distances.cdist is not converted")
def test_layers_that_are_not_converted_are_named(main: Cli, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(ODD.replace("{folder!r}", repr(str(folder))))
    sizes = ("--tokens", "32", "--window", "32")
    done = main("study", "perplexity", f"{file}:make", "--format", "mxfp4", *sizes)
    printed = " ".join(done.succeeded().split())
    assert "in FP32 in mxfp4: distances._euclidean_dist (" in printed
    # Distances of 32 vectors of 64 values.
    macs = 32 * 32 * 64
    everything = 32 * (2 * (64 * (64 * 2 + 32 * 2 + 96 * 2) + 96 * 64) + 300 * 64)
    everything += 2 * 2 * 4 * 32 * 32 * 16 + macs
    assert f"({macs / everything:.1%} of {everything:,} MACs)" in printed


def test_windows_with_nan_are_named(
    main: Cli, folder: Path, tmp_path: Path, tokens: Tensor
) -> None:
    (tmp_path / "broken.py").write_text(
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        "def make():\n"
        f"    model = AutoModelForCausalLM.from_pretrained({str(folder)!r})\n"
        "    model.model.norm.weight.data[0] = float('nan')\n"
        f"    return model, AutoTokenizer.from_pretrained({str(folder)!r})\n"
    )
    origin = (tmp_path / "broken.py", "make")
    broken = load(*origin)
    message = "fp32: scores of window 0, tokens 0 to 31, are NaN"
    with pytest.raises(ValueError, match=message):
        study_perplexity("broken", origin, broken, tokens, [], TaskOptions())
    file = f"{tmp_path / 'broken.py'}:make"
    done = main("study", "perplexity", file, "--tokens", "64", "--window", "32")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"axs6: {message}"


def test_the_command(main: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("study", "perplexity", str(folder), "--format", "mxfp4,mx9xbf16")
    sizes = ("--tokens", "96", "--window", "32")
    around = ("--weights", "gptq", "--rotate", "64", "--smooth", "0.5")
    printed = main(*arguments, *sizes, *around, "-o", str(out), "--json", "-").succeeded()
    figures = json.loads(printed)
    names = [f"{each}, smooth 0.5, rotate 64, gptq" for each in ("mxfp4", "mx9xbf16")]
    assert [row["name"] for row in figures["rows"]] == ["fp32", *names]
    left = [f"model.layers.{i}.mlp.down_proj (96)" for i in (0, 1)]
    assert [row["unrotated"] for row in figures["rows"]] == [[], left, left]
    assert figures == json.loads((out / "perplexity.json").read_text())
    lines = (out / "perplexity.csv").read_text().splitlines()
    assert lines[0].startswith("setting,bits,perplexity")
    assert len(lines) == 4
    assert {x.name for x in out.iterdir()} == {
        *("perplexity.json", "perplexity.csv", "perplexity.svg", "perplexity.png")
    }


def test_a_tokenizer_of_another_model(model: LanguageModel) -> None:
    other = replace(model, tokenise=lambda text: [999] * 40)
    with pytest.raises(ValueError, match="gives token 999, and the model knows 300"):
        windows(other, "text", 32, 32)


CALIBRATED = ("{folder}", "--window", "32", "--tokens", "32", "--weights", "gptq")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "MODEL must be a folder of Hugging Face files, a GGUF file"),
        (["{tmp}"], "has no model: config.json is missing"),
        (
            ["{lacking}"],
            "must be a causal language model: model.norm.weight is missing in its files",
        ),
        (["{bare}"], "must be a causal language model: "),
        (["{folder}", "--window", "128"], "window must be 64 tokens at most, not 128"),
        (["{folder}", "--window", "32", "--text", "{short}"], "must have a window of 32 tokens"),
        (["{folder}", "--tokens", "10"], "tokens must be a window of 512 or more, not 10"),
        (["{folder}", "--format", "mx9xmx6xmx4"], "weights x activations"),
        (["{folder}", "--format", "bf16"], "weights must be in a block format"),
        (["{folder}", "--format", "mx9xfp32", "--accumulator", "paper"], "needs activations in"),
        (["{folder}", "--rotate", "24"], "rotate must be one of 8, 16, 32, 64, 128, not 24"),
        (["{folder}", "--smooth", "1.5"], "smooth must be from 0 to 1, not 1.5"),
        (["{folder}", "--weights", "floor"], "weights must be nearest or gptq, not 'floor'"),
        (
            ["{folder}", "--format", "if4", "--weights", "gptq"],
            "gptq rounds to one element, and scales select one of two in if4",
        ),
        (
            ["{folder}", "--scale", "six"],
            "choice must be one of max, four-over-six, mse, not 'six'",
        ),
        (["{folder}", "--format", "mx4", "--scale", "mse"], "mse is not for shifts"),
        (
            [*CALIBRATED, "--text", "{some}"],
            "the text must have a window of 32 tokens after its first 32, not 8",
        ),
        (["{folder}", "--text", "{binary}", "--window", "32"], "must be a text in UTF-8"),
        (["{other}", "--window", "32"], "the tokenizer has 302 tokens and the model 300"),
        (["{bad}"], "must be a whole GGUF file: it does not begin with GGUF"),
    ],
)
def test_bad_input(
    main: Cli, folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "short.txt").write_text("few")
    (tmp_path / "some.txt").write_text("0123456789" * 4)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "bad.gguf").write_bytes(bytes(100))
    other = tmp_path / "other"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {"one": 300, "more": 301}
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    lacking, bare = tmp_path / "lacking", tmp_path / "bare"
    for place in (lacking, bare):
        place.mkdir()
        for file in folder.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
    (bare / "model.safetensors").unlink()
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, lacking / "model.safetensors", {"format": "pt"})
    places = {
        "lacking": lacking,
        "bare": bare,
        "tmp": tmp_path / "empty",
        "folder": folder,
        "short": tmp_path / "short.txt",
        "some": tmp_path / "some.txt",
        "binary": tmp_path / "binary.txt",
        "other": other,
        "bad": tmp_path / "bad.gguf",
    }
    done = main("study", "perplexity", *(each.format(**places) for each in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    said = [x for x in done.stderr.splitlines() if x.startswith("axs6:")]
    assert len(said) == 1
    assert done.stderr.splitlines()[-1] == said[0]
