"""Work that a method leaves to threads and to backward passes, with its products replaced too.

What replaces products holds for one thread and one call. Threads that start there, checkpointed
functions that a backward pass computes again, and the backward methods of a user's
`torch.autograd.Function` have it no more. Python and torch have no hook for these, so their own
functions are exchanged, once, for ones that do the same where nothing is replaced.
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
    """A function of torch's checkpoints, whose second argument is what is computed again."""

    @functools.wraps(forward)
    def replaced(context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return forward(context, going_on(function), *args, **kwargs)

    return replaced


def _remember(node: Any) -> None:
    """Keep, where a user's Function is applied, what tells of products in its backward method."""
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
    """Let threads and backward passes go on with what is replaced where they come from."""
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
