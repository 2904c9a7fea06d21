"""Cycles are collected by the window's thread, when there is enough to collect."""

import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QObject

from planner.gui.threads import GarbageCollector


class Knot:
    """Holds itself; says which thread let it go."""

    def __init__(self) -> None:
        self.self = self
        self.let_go_by: list[str] = []
        weakref.finalize(self, lambda told: told.append(threading.current_thread().name), self.let_go_by)


@pytest.fixture
def collector(qapp):
    parent = QObject()
    made = GarbageCollector(parent)
    yield made
    made.close()


def many() -> list[list[object]]:
    return [[number] for number in range(2 * gc.get_threshold()[0])]


def test_what_another_thread_makes_is_collected_on_the_windows(collector):
    told = Knot().let_go_by
    kept: list[object] = []
    worker = threading.Thread(target=lambda: kept.extend(many()), name="worker")
    worker.start()
    worker.join()
    assert told == []
    collector.collect()
    assert told == [threading.current_thread().name]


def test_nothing_is_looked_for_where_little_was_made(collector):
    gc.collect()
    told = Knot().let_go_by
    collector.collect()
    assert told == []


def test_python_collects_by_itself_again_afterwards(qapp):
    parent = QObject()
    made = GarbageCollector(parent)
    assert not gc.isenabled()
    made.close()
    assert gc.isenabled()
