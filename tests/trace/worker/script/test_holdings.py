"""What the variables of a frame hold beside tensors."""

import sys
from collections import deque

import numpy as np
import torch

from planner.trace.worker.script.holdings import Holdings, holdings_of

GATHERED: list[object] = []


class Buffer:
    """A buffer in an attribute."""

    def __init__(self) -> None:
        self.items = deque([1.0])


def grown(grow) -> tuple[int, ...]:
    """Return by how much what the caller's frame holds grows when `grow` is called."""
    caller = sys._getframe(1)
    holdings_of(caller)  # some objects make their dictionary when they are looked at first
    before = holdings_of(caller)
    grow()
    after = holdings_of(caller)
    assert before is not None
    assert after is not None
    return tuple(late - early for late, early in zip(after, before, strict=True))


def test_what_is_gathered_is_found_wherever_it_is():
    numbers, by_class, buffer, known = [0.5], {"a": []}, Buffer(), {1}
    hidden: list[object] = []

    def keep():
        hidden.append(np.zeros(10))

    changes = {
        "a number": grown(lambda: numbers.append(1.5)),
        "numbers of a class": grown(lambda: by_class["a"].extend((1, True))),
        "text in an attribute": grown(lambda: buffer.items.append("text")),
        "a number in a set": grown(lambda: known.add(3)),
        "an array in a closure": grown(keep),
        "an array of dates": grown(lambda: GATHERED.append(np.array(["2026-11-29"], dtype="datetime64[D]"))),
        "bytes": grown(lambda: GATHERED.append(bytearray(16))),
        "a tensor": grown(lambda: GATHERED.append(torch.ones(3))),
        "nothing": grown(GATHERED.clear),
    }
    assert changes == {
        "a number": (1, 0, 0),
        "numbers of a class": (2, 0, 0),
        "text in an attribute": (0, 1, 0),
        "a number in a set": (1, 0, 0),
        "an array in a closure": (0, 1, 80),
        "an array of dates": (0, 1, 8),
        "bytes": (0, 1, 16),
        "a tensor": (0, 1, 0),
        "nothing": (0, -3, -24),
    }


def test_a_long_list_has_what_its_last_element_is():
    numbers, texts = [0] * 5000, ["a"] * 5000
    changes = grown(lambda: numbers.append(1)), grown(lambda: texts.append("b"))
    assert changes == ((1, 0, 0), (0, 1, 0))


def test_the_variables_of_a_frame_are_not_held():
    freed = []
    kept = Buffer()
    kept.items = Watched(freed)
    assert holdings_of(sys._getframe()) is not None
    del kept
    assert freed == ["freed"]


class Watched:
    """An object that tells when it is freed."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def __del__(self) -> None:
        self._told.append("freed")


def test_too_many_objects_are_not_looked_at(monkeypatch):
    monkeypatch.setattr("planner.trace.worker.script.holdings._MOST_OBJECTS", 3)
    assert holdings_of(sys._getframe()) is None


def test_only_a_few_numbers_may_be_gathered():
    before = Holdings(10, 5, 80)
    assert not Holdings(18, 5, 80).has_kept(before)
    assert Holdings(19, 5, 80).has_kept(before)
    assert Holdings(10, 6, 80).has_kept(before)
    assert Holdings(10, 5, 88).has_kept(before)


class Anything:
    """An object that has every attribute, as recorders of calls have."""

    def __getattr__(self, name):
        return self


def test_an_object_with_every_attribute_is_no_array():
    anything = [Anything()]
    assert grown(lambda: anything.append(Anything()))[2] == 0
