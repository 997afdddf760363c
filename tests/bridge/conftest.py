from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor

import axs6

Product = Callable[..., Tensor]


@pytest.fixture
def same() -> Callable[[Tensor, Tensor], bool]:
    """Whether two tensors are of one dtype and shape and equal in every bit."""

    def compare(a: Tensor, b: Tensor) -> bool:
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.dtype.itemsize]
        left, right = (x.detach().contiguous().view(kind) for x in (a, b))
        return torch.equal(left, right)

    return compare


@pytest.fixture
def golden_product() -> Product:
    """What the golden model gives for (..., K) and (N, K), in FP32."""

    def product(a: Tensor, b: Tensor, block: int = 32, nonfinite: str = "error") -> Tensor:
        left, right = (
            axs6.encode(x.detach().double().numpy(), block=block, nonfinite=nonfinite)
            for x in (a.reshape(a.shape[:-1].numel(), a.shape[-1]), b)
        )
        return torch.from_numpy(axs6.matmul(left, right)).view(*a.shape[:-1], len(b))

    return product


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture(params=[False, True], ids=["IEEE subnormals", "flushed subnormals"])
def mode(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[None]]:
    """A context in which this thread keeps subnormals, or flushes them to zero."""

    @contextmanager
    def context() -> Iterator[None]:
        torch.set_flush_denormal(request.param)
        try:
            yield
        finally:
            torch.set_flush_denormal(False)

    return context
