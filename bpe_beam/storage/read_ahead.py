"""Results of calls in order, some of them made before they are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


def read_ahead(
    call: Callable[[S], T], items: Iterable[S], ahead: int, threads: int | None = None
) -> Iterator[T]:
    """Yield the result of a call for each item, in the order of the items.

    The error of a call comes in its place, when the calls that run have ended.

    Args:
        call: What is called, in several threads; or in this one, if `ahead` is less than 2.
        items: The items; they are taken when they are needed.
        ahead: The maximum number of results that are in memory or on their way.
        threads: The number of threads; default: `ahead`.
    """
    if ahead < 2:
        yield from map(call, items)
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads or ahead, "ahead") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(call, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
