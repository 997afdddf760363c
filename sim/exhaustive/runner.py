"""Running spaces: a share of their chunks, several at a time, resuming from the state."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter

from axs6.sim.control import workers
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.state import State

GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: its multiples modulo 2^64 spread evenly."""


@dataclass(frozen=True)
class Share:
    """Part `number` of `of` parts of each space, counted from 1; together they are the whole.

    Raises:
        ValueError: there is no such part.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"share must be N/M with 1 <= N <= M, not {self.number}/{self.of}")

    @classmethod
    def parse(cls, text: str) -> "Share":
        """The share written N/M.

        Raises:
            ValueError: the text is not a share.
        """
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal()):
            raise ValueError(f"share must be N/M with 1 <= N <= M, not {text!r}")
        return cls(int(number), int(of))

    def chunks(self, count: int) -> list[int]:
        """Numbers of the chunks in this share, spread over all `count`, in rising order.

        Every share has at least one chunk, so spaces of few chunks are in several shares.
        """
        spread = sorted(range(count), key=lambda chunk: chunk * GOLDEN_RATIO % (1 << 64))
        first, end = (self.number - 1) * count // self.of, -(-self.number * count // self.of)
        return sorted(spread[first:end])


@dataclass(frozen=True)
class SpaceOutcome:
    """Result of a run in a space.

    Args:
        space: name of the space.
        formula: the number of all its cases as a product.
        cases: all its cases.
        compared: cases that agreed in this run.
        earlier: cases of the share that agreed in earlier runs, by the state.
        seconds: duration of this run.
        difference: the first case that differs, after which the run ended; None if none does.
    """

    space: str
    formula: str
    cases: int
    compared: int
    earlier: int
    seconds: float
    difference: str | None


def compile_designs(spaces: Sequence[Space], threads: int) -> None:
    """Compile the designs of spaces, several at a time.

    Raises:
        ToolError: the compiler is missing or fails.
    """
    designs = {space.design: space.design.source for space in spaces}
    with workers(threads) as pool:
        pool.map(lambda design: design.model, designs)


def run_space(
    space: Space,
    state: State,
    share: Share,
    threads: int,
    advance: Callable[[int], object] | None = None,
) -> SpaceOutcome:
    """Compare the chunks of a share that the state does not hold yet, up to a first difference.

    Args:
        space: what to compare; `state.enter` took it up.
        state: gets each chunk that agrees.
        share: the part to compare.
        threads: chunks worked on at a time.
        advance: called with the number of cases after each chunk that agreed.
    """
    started = perf_counter()
    chosen = share.chunks(space.chunks)
    missing = [chunk for chunk in chosen if not state.is_done(space, chunk)]
    compared, difference = 0, None
    for chunk, difference in _differences(space, missing, threads):
        if difference is not None:
            break
        state.record(space, chunk)
        compared += space.chunk_cases
        if advance is not None:
            advance(space.chunk_cases)
    return SpaceOutcome(
        space=space.name,
        formula=space.formula,
        cases=space.cases,
        compared=compared,
        earlier=(len(chosen) - len(missing)) * space.chunk_cases,
        seconds=perf_counter() - started,
        difference=difference,
    )


def _differences(
    space: Space, chunks: Sequence[int], threads: int
) -> Iterator[tuple[int, str | None]]:
    """Chunks with their first differences, in order, worked on a few ahead."""
    waiting: deque[tuple[int, Future[str | None]]] = deque()
    with workers(threads) as pool:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(space.difference, chunk)))
            if len(waiting) == 2 * threads:
                first, found = waiting.popleft()
                yield first, found.result()
        for last, found in waiting:
            yield last, found.result()
