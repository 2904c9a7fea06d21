"""Background work in threads."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from threading import Event, Thread
from typing import Any, Final, NamedTuple, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

Result = TypeVar("Result")
_LONGEST_END_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)


class _Outcome(NamedTuple):
    """End of a run in a background thread: its key, its number among the runs of that key, and its future."""

    key: str
    generation: int
    future: Future[object]


class _Round(NamedTuple):
    """Result of a round of a run in a background thread, for `on_round` unless the run was stopped."""

    stopped: Event
    on_round: Callable[[Any], None]
    result: object


class TaskRunner(QObject):
    """Runs functions in background threads and calls back on the window's thread.

    The functions must not use Qt. The outcome of a run is discarded once another run with the same key has started, or
    once the object of the `on_done` method has been destroyed.
    """

    busy_changed = Signal(bool)
    _finished = Signal(object)
    _round_ended = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="task")
        self._generations: dict[str, int] = {}
        self._waiting: dict[str, tuple[Callable[[Any], None], Callable[[BaseException], None]]] = {}
        self._stops: dict[str, Callable[[], None]] = {}
        self._open = True
        # Queued even on this thread: a quick function can finish before `run` has noted it.
        self._finished.connect(self._call_back, Qt.ConnectionType.QueuedConnection)
        self._round_ended.connect(self._pass_on, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Return whether any background run is still in progress."""
        return bool(self._waiting)

    def run(
        self,
        key: str,
        work: Callable[[], Result],
        on_done: Callable[[Result], None],
        on_error: Callable[[BaseException], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> None:
        """Run `work` in a background thread; call `on_done` with its result or `on_error` with its exception.

        Without `on_error` the exception is raised on the window's thread, as an unexpected error.
        `stop` makes `work` end early; it is called once its outcome is no longer needed.
        """
        self._stop_work(key)
        if stop is not None:
            self._stops[key] = stop
        generation = self._generations.get(key, 0) + 1
        self._generations[key] = generation
        self._waiting[key] = (on_done, on_error or _reraise_error)
        self.busy_changed.emit(True)
        self._pool.submit(work).add_done_callback(partial(self._emit_outcome, key, generation))

    def run_in_rounds(
        self,
        key: str,
        work: Callable[[Callable[[], bool]], Iterable[Result]],
        on_round: Callable[[Result], None],
        on_done: Callable[[None], None],
        on_error: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Take the results of `work` in a background thread; call `on_round` with each, and `on_done` at the end.

        `work` is handed a function that returns whether its results are no longer needed.
        """
        stopped = Event()

        def iterate() -> None:
            for result in work(stopped.is_set):
                self._round_ended.emit(_Round(stopped, on_round, result))

        self.run(key, iterate, on_done, on_error, stopped.set)

    def cancel(self, key: str) -> None:
        """Discard the outcome of the background run called `key`, and ask the run to stop."""
        self._stop_work(key)
        self._generations[key] = self._generations.get(key, 0) + 1
        self._waiting.pop(key, None)
        self.busy_changed.emit(self.busy)

    def shutdown(self) -> None:
        """Discard the outcomes of all runs, and wait at most ten seconds for runs in progress."""
        self._open = False
        self._waiting.clear()
        for key in tuple(self._stops):
            self._stop_work(key)
        ending = Thread(target=self._pool.shutdown, kwargs={"cancel_futures": True}, name="tasks' end", daemon=True)
        ending.start()
        ending.join(_LONGEST_END_SECONDS)
        if ending.is_alive():
            _log.warning("A task did not end within %g seconds", _LONGEST_END_SECONDS)

    def _stop_work(self, key: str) -> None:
        stop = self._stops.pop(key, None)
        if stop is not None:
            stop()

    def _emit_outcome(self, key: str, generation: int, future: Future[object]) -> None:
        # Called on the worker's thread; the signal passes the outcome to the window's thread.
        if self._open:
            self._finished.emit(_Outcome(key, generation, future))

    @Slot(object)
    def _pass_on(self, ended: _Round) -> None:
        if self._open and not ended.stopped.is_set() and not _is_receiver_destroyed(ended.on_round):
            ended.on_round(ended.result)

    @Slot(object)
    def _call_back(self, outcome: _Outcome) -> None:
        if not self._open or outcome.generation != self._generations[outcome.key]:
            return
        on_done, on_error = self._waiting.pop(outcome.key)
        self._stops.pop(outcome.key, None)
        self.busy_changed.emit(self.busy)
        if _is_receiver_destroyed(on_done):
            return
        try:
            error = outcome.future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is None:
            on_done(outcome.future.result())
        else:
            _log.info("Task %s failed", outcome.key, exc_info=error)
            on_error(error)


def _reraise_error(error: BaseException) -> None:
    raise error


def _is_receiver_destroyed(on_done: Callable[[Any], None]) -> bool:
    """Return whether `on_done` is a method of a destroyed Qt object."""
    receiver = getattr(on_done, "__self__", None)
    return isinstance(receiver, QObject) and not shiboken6.isValid(receiver)
