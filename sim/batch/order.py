"""An order of operations with few live values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from axs6.sim.batch.logic import Literal
from axs6.sim.batch.tables import Operation


def lean(operations: Sequence[Operation], kept: Iterable[Literal]) -> list[Operation]:
    """The operations, each after those that drive it, so that their values soon end.

    Of the ready operations, the next one ends the most values and begins the fewest; among equals,
    it reads the latest result. `kept` are bits that are needed afterwards.
    """
    driver = {bit: index for index, each in enumerate(operations) for bit in each.driven}
    readers: dict[Literal, list[int]] = {bit: [] for bit in driver}
    missing = []
    for index, each in enumerate(operations):
        inner = {bit for bit in each.read if bit in driver}
        missing.append(len(inner))
        for bit in inner:
            readers[bit].append(index)
    left = Counter({bit: len(users) for bit, users in readers.items()})
    left.update(bit for bit in set(kept) if bit in driver)

    def gain(index: int) -> int:
        ended = sum(left[bit] == 1 for bit in set(operations[index].read) if bit in driver)
        return ended - len(operations[index].driven)

    ready: list[tuple[int, int, int]] = []
    touched = [0] * len(operations)

    def offer(index: int, time: int) -> None:
        touched[index] = time
        heappush(ready, (-gain(index), -time, index))

    for index, count in enumerate(missing):
        if not count:
            offer(index, 0)
    done: set[int] = set()
    order = []
    while ready:
        worth, time, index = heappop(ready)
        if index in done or -time != touched[index]:
            continue
        if worth != -gain(index):
            heappush(ready, (-gain(index), time, index))
            continue
        done.add(index)
        order.append(operations[index])
        for bit in {bit for bit in operations[index].read if bit in driver}:
            left[bit] -= 1
            if left[bit] == 1:
                for user in readers[bit]:
                    if user not in done and not missing[user]:
                        offer(user, touched[user])
        for bit in operations[index].driven:
            for user in readers[bit]:
                missing[user] -= 1
                if not missing[user]:
                    offer(user, len(order))
    return order
