"""Converted language models in the hands of transformers and lm-eval."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from axs6.golden import encode, matmul
from axs6.torch import convert

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def tokenizer_of(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def converted(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    return convert(model, format="mxfp4")


@pytest.mark.parametrize("dtype", DTYPES)
def test_generating_with_kept_keys_and_values(folder: Path, dtype: torch.dtype) -> None:
    model = converted(folder, dtype)
    tokenizer = tokenizer_of(folder)
    prompt = tokenizer("The class", return_tensors="pt").input_ids
    seen: list[tuple[Tensor, Tensor]] = []
    layer = model.model.layers[0].self_attn.q_proj
    layer.register_forward_hook(lambda module, inputs, output: seen.append((inputs[0], output)))
    found = model.generate(
        *(prompt,),
        max_new_tokens=5,
        do_sample=False,
        pad_token_id=1,
        eos_token_id=None,
        use_cache=True,
    )
    assert found.shape == (1, prompt.shape[1] + 5)
    assert [x.shape[1] for x, _ in seen] == [prompt.shape[1], 1, 1, 1, 1]
    # Whatever the model's dtype, a product has the bits of the golden model, rounded once.
    weight = encode(layer.weight.detach().float().numpy(), "mxfp4")
    for x, y in seen:
        exact = torch.from_numpy(matmul(encode(x[0].float().numpy(), "mxfp4"), weight))
        assert torch.equal(y[0], exact.to(dtype))
    with torch.no_grad():
        first = model(prompt).logits[0, -1].argmax()
    assert found[0, prompt.shape[1]] == first


@pytest.mark.peers
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_wrapper_of_lm_eval(folder: Path, dtype: torch.dtype) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    tokenizer = tokenizer_of(folder)
    tokenizer.eos_token = tokenizer.pad_token = tokenizer.convert_ids_to_tokens(1)
    model = converted(folder, dtype)
    judge = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1, max_length=64)
    context, continuation = "The class", " is"
    requests = [Instance("loglikelihood", {}, (context, continuation), 0)]
    ((found, _),) = judge.loglikelihood(requests)
    tokens = tokenizer(context + continuation, return_tensors="pt").input_ids
    start = len(tokenizer(context).input_ids)
    with torch.no_grad():
        scores = model(tokens[:, :-1]).logits[0].log_softmax(-1)
    expected = sum(float(scores[i - 1, tokens[0, i]]) for i in range(start, tokens.shape[1]))
    assert np.isclose(found, expected, rtol=1e-6)
    until = {"until": ["\n"], "max_gen_toks": 5}
    (text,) = judge.generate_until([Instance("generate_until", {}, ("The", until), 0)])
    assert isinstance(text, str)
