"""Waiting for other machines: a time limit that holds for every part of a request, and failures in plain words."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Final, TypeVar

_Answer = TypeVar("_Answer")

ANSWER_SECONDS: Final = 4.0
"""Longest wait for an answer; two hosts that never answer take less than ten seconds together."""


def answer_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Return the result of `ask`, which waits for another machine.

    The limit of a socket holds for each address of a host anew, and for the search of its name not at all.

    Raises:
        TimeoutError: If there is no answer after `seconds`.
    """
    answer: Future[_Answer] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 - raised again by the thread that asked
            answer.set_exception(error)

    Thread(target=wait, name="network", daemon=True).start()
    return answer.result(seconds)


def connection_failure(error: BaseException) -> str:
    """Return why another machine did not answer, for a message that begins with its name."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "cannot be reached: its address was not found; this machine seems to be offline"
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return "did not respond in time"
    return f"cannot be reached ({(str(causes[-1]) or type(causes[-1]).__name__)[:200]})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that it was raised from or has as its reason."""
    cause: object = error
    while isinstance(cause, BaseException):
        yield cause
        cause = cause.__cause__ or cause.__context__ or getattr(cause, "reason", None)
