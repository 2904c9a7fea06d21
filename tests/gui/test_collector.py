"""Python's garbage collection runs on the window's thread."""

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


def test_garbage_of_another_thread_is_collected_on_the_windows_thread(collector):
    told = Knot().let_go_by
    kept: list[object] = []
    worker = threading.Thread(target=lambda: kept.extend(many()), name="worker")
    worker.start()
    worker.join()
    assert told == []
    collector.collect()
    assert told == [threading.current_thread().name]


def test_few_new_objects_start_no_collection(collector):
    gc.collect()
    told = Knot().let_go_by
    collector.collect()
    assert told == []


def test_python_collects_garbage_itself_after_close(qapp):
    parent = QObject()
    made = GarbageCollector(parent)
    assert not gc.isenabled()
    made.close()
    assert gc.isenabled()
