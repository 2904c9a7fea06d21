"""A limit of processor time that holds on any machine, since it is counted in loops that run beside what is tested."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

_ADDITIONS = 1_000_000
_SUSPICIOUS_SECONDS = 1.0
_MOST_LOOPS = 250


@contextmanager
def refused_at_once(text: str = "") -> Iterator[None]:
    """Fail where the block works for longer than 250 loops of a million additions.

    That is far more than anything that is refused needs, and far less than a search whose work grows faster than its
    input. A slow machine, and the measurement of coverage, slow down the loop as well.
    """
    began = process_time()
    yield
    spent = process_time() - began
    if spent > _SUSPICIOUS_SECONDS:  # most blocks are shorter than the loop
        assert spent < _MOST_LOOPS * _loop_seconds(), text


def _loop_seconds() -> float:
    began, total = process_time(), 0
    for number in range(_ADDITIONS):
        total += number
    return process_time() - began
