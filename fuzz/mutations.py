"""Random changes of inputs, where no coverage-guided fuzzer is installed."""

import random
import re
from collections.abc import Iterator, Sequence

NUMBER = re.compile(rb"-?\d+")
NUMBERS = (b"0", b"-1", b"1", b"2", b"255", b"65536", b"4294967296", b"9223372036854775808")
BYTES = (0, 1, 2, 3, 0x7F, 0x80, 0xFF)


def mutations(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """`count` inputs, each a seed or a seed with a few random changes."""
    rng = random.Random(seed)
    for _ in range(count):
        data = rng.choice(seeds)
        for _ in range(rng.randrange(6)):
            data = rng.choice(CHANGES)(data, rng, seeds)
        yield data


def _flip(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    if not data:
        return data
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def _overwrite(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) or 1)
    return data[:place] + bytes([rng.choice(BYTES)]) + data[place + 1 :]


def _remove(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) or 1)
    return data[:place] + data[place + 1 + rng.randrange(1 << rng.randrange(6)) :]


def _insert(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    place, start = (rng.randrange(len(data) or 1) for _ in range(2))
    return data[:place] + data[start : start + 1 + rng.randrange(16)] + data[place:]


def _splice(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    return data[: rng.randrange(len(data) or 1)] + other[rng.randrange(len(other) or 1) :]


def _number(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    start, end = rng.choice(found).span()
    return data[:start] + rng.choice(NUMBERS) + data[end:]


CHANGES = (_flip, _overwrite, _remove, _insert, _splice, _number)
