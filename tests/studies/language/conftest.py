"""A small random language model, as the files that tools write."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from axs6.studies.language.models import LanguageModel, load
from axs6.studies.language.texts import documentation, windows


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with grouped heads and a tokenizer of 300 tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    made = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([documentation()[:20_000]], trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(made)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            parameter.data *= 6 if parameter.ndim > 1 else 1
    model.save_pretrained(made)
    return made


@pytest.fixture(scope="session")
def model(folder: Path) -> LanguageModel:
    """That model, loaded; nobody changes it."""
    return load(folder)


@pytest.fixture(scope="session")
def tokens(model: LanguageModel) -> Tensor:
    """Three windows of 32 tokens."""
    return windows(model, documentation(), 96, 32)


@pytest.fixture(scope="session")
def others(model: LanguageModel) -> Tensor:
    """Eight windows after these."""
    return windows(model, documentation(), 256, 32, 96)


@pytest.fixture(scope="session")
def gguf_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as a GGUF file: matrices in Q8_0, and the rows of its heads reordered."""
    import gguf
    from gguf.quants import quantize
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    model, tokenizer = (
        each.from_pretrained(folder) for each in (AutoModelForCausalLM, AutoTokenizer)
    )
    c = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(c.max_position_embeddings)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_dimension_count(c.head_dim)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    state: Any = tokenizer.backend_tokenizer.to_str()
    import json

    writer.add_token_merges([" ".join(pair) for pair in json.loads(state)["model"]["merges"]])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        values = tensor.numpy()
        heads = {"q_proj": c.num_attention_heads, "k_proj": c.num_key_value_heads}
        for part, count in heads.items():
            if part in name:
                # In each head the rows of its two halves take turns.
                halves = values.reshape(count, 2, -1, values.shape[-1])
                values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
        stored = names.get_name(name, (".weight",))
        if values.ndim > 1:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(stored, quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(stored, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
