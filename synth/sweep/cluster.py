"""Work done on the workers of a Dask cluster."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from axs6.install import install_command
from axs6.synth.sweep.tasks import K, OtherEnvironmentError, PoolTask, results, this_worker

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 5
"""Time limits for the answer of a scheduler, and then for its first worker."""

WITHOUT_WORKERS_SECONDS = 30
"""How long a cluster may be without workers before a sweep on it ends."""

_PROTOCOLS = ("tcp", "tls", "ucx", "ws", "wss")


def check_address(address: str) -> None:
    """Raise ValueError unless the text can be the address of a Dask scheduler."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        complete = parts.scheme in _PROTOCOLS and parts.hostname and parts.port
    except ValueError:
        complete = False
    if not complete:
        raise ValueError(f"scheduler must be an address such as tcp://host:8786, not {address!r}")


def on_cluster(tasks: Sequence[K], address: str) -> Generator[tuple[K, Any], None, None]:
    """As `axs6.synth.sweep.pools.outcomes`, on the workers of a Dask cluster."""
    with _cluster(address) as client:
        try:
            pool = client.get_executor()
            futures = {pool.submit(_outcome_on_worker, task.sent()): task for task in tasks}
            for task, found in results(futures, _Workers(client, address).check):
                yield task, task.received(found)
        except Exception as error:
            if isinstance(error, CancelledError) or client.status != "running":
                raise _gone(address) from None
            raise


@contextlib.contextmanager
def _cluster(address: str) -> Iterator["Client"]:
    """A client of a Dask cluster that has workers."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise RuntimeError(
            f"a scheduler needs the package distributed: {install_command('cluster')}"
        ) from None
    _check_scheduler(address)
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise _unreachable(address, error) from None
    try:
        _wait_for_worker(client, address)
        yield client
    finally:
        with _without_logs():
            client.close()


def _check_scheduler(address: str) -> None:
    """Ask who is at an address, in a limited time: a client waits for the first words without one.

    Raises:
        RuntimeError: nobody answers, or what answers is no scheduler.
    """
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> object:
        arguments = Security().get_connection_args("client")
        async with rpc(address, timeout=CONNECT_SECONDS, connection_args=arguments) as there:
            return (await there.identity())["type"]

    async def ask_in_time() -> object:
        return await asyncio.wait_for(ask(), CONNECT_SECONDS)

    try:
        # In a thread of its own: in a notebook this one has a loop that runs.
        with _without_logs(), ThreadPoolExecutor(1) as pool:
            kind = pool.submit(asyncio.run, ask_in_time()).result()
    except TimeoutError:
        raise _unreachable(address, f"no answer within {CONNECT_SECONDS} s") from None
    except OSError as error:
        raise _unreachable(address, error) from None
    # What speaks another protocol is any error of those who read it as theirs.
    except Exception as error:
        raise _unreachable(address, f"what answers is none ({type(error).__name__})") from None
    if kind != "Scheduler":
        raise _unreachable(address, f"what answers is a {kind}")


def _unreachable(address: str, why: object) -> RuntimeError:
    return RuntimeError(f"cannot reach a Dask scheduler at {address}: {why}")


def _wait_for_worker(client: "Client", address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise RuntimeError(f"the Dask scheduler at {address} has no workers") from None
    except OSError:
        raise _gone(address) from None


def _gone(address: str) -> RuntimeError:
    return RuntimeError(
        f"the Dask scheduler at {address} went away or was restarted; finished points "
        "are kept: run it again when it is back"
    )


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Hide the log of distributed, such as tracebacks when it closes a lost connection."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


class _Workers:
    """The workers of a cluster, whose absence is noticed."""

    def __init__(self, client: "Client", address: str) -> None:
        self._client = client
        self._address = address
        self._gone_since: float | None = None

    def check(self) -> None:
        """Raise RuntimeError when all looks have found none for too long."""
        now = time.monotonic()
        if _count_workers(self._client):
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= WITHOUT_WORKERS_SECONDS:
            raise RuntimeError(
                f"the Dask scheduler at {self._address} has shown no workers for "
                f"{WITHOUT_WORKERS_SECONDS:g} s; finished points are kept: run it "
                "again when there are workers"
            )


def _count_workers(client: "Client") -> int:
    """Number of workers of a cluster; 0 if its scheduler does not report it."""
    scheduler = client.scheduler
    if scheduler is None:
        return 0
    try:
        return len(client.sync(scheduler.ncores, callback_timeout=CONNECT_SECONDS))
    except OSError:
        return 0


def _outcome_on_worker(task: PoolTask[Any]) -> Any:
    """Do a task on a worker of a cluster, which says by name what it cannot use."""
    try:
        return task.outcome()
    except OSError as error:
        message = task.failure(error, f"the worker {this_worker()}")
        raise OtherEnvironmentError(message) from None
