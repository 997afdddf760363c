"""Products in threads and backward passes that a method starts, replaced too.

Replacement holds for one thread and one call. It does not reach threads that start there,
checkpointed functions that a backward pass computes again, and the backward methods of a user's
`torch.autograd.Function`. Python and torch have no hook for these, so their functions are patched
once; the patches change nothing where no products are replaced.
"""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import _worker
from typing import Any

from torch.autograd.function import BackwardCFunction
from torch.utils import checkpoint

from axs6.torch.intercept import going_on, telling


def _in_thread(start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def replaced(thread: Any) -> Any:
        # Those of a pool live on; what they run is seen to where it is submitted.
        if thread._target is not _worker:
            thread.run = going_on(thread.run)
        return start(thread)

    return replaced


def _in_pool(submit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(submit)
    def replaced(pool: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return submit(pool, going_on(function), *args, **kwargs)

    return replaced


def _again(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch's checkpoints, whose second argument is the function to recompute."""

    @functools.wraps(forward)
    def replaced(context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return forward(context, going_on(function), *args, **kwargs)

    return replaced


def _remember(node: Any) -> None:
    """When a user's Function is applied, keep the mode that reports products in its backward
    method."""
    function = node._forward_cls
    if not function.__module__.startswith("torch."):
        node.axs6_telling = telling(f"backward of {function.__name__}")


def _told(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def replaced(node: Any, *gradients: Any) -> Any:
        within = getattr(node, "axs6_telling", None)
        if within is None:
            return apply(node, *gradients)
        with within():
            return apply(node, *gradients)

    return replaced


@functools.cache
def follow() -> None:
    """Let threads and backward passes inherit the replacements of the code that starts them."""
    threading.Thread.start = _in_thread(threading.Thread.start)  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = _in_pool(ThreadPoolExecutor.submit)  # type: ignore[method-assign]
    frame = checkpoint._CheckpointFrame
    frame.__init__ = _again(frame.__init__)  # type: ignore[method-assign]
    reentrant: Any = checkpoint.CheckpointFunction
    reentrant.forward = staticmethod(_again(reentrant.forward))
    node: Any = BackwardCFunction
    node.__init__ = _remember
    node.apply = _told(node.apply)
    node.apply_boxed = _told(node.apply_boxed)
