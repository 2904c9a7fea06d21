import socket
import threading
from urllib.error import URLError

import pytest

from planner.errors import NetworkError
from planner.network import ANSWER_SECONDS, HttpClient, answer_within, connection_failure


def chained(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def test_an_answer_is_returned_and_an_error_raised():
    assert answer_within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        answer_within(5, lambda: 1 // 0)


def test_what_never_answers_is_given_up():
    over = threading.Event()
    with pytest.raises(TimeoutError):
        answer_within(0.05, over.wait)
    over.set()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (URLError(socket.gaierror(-3, "no such name")), "this machine seems to be offline"),
        (
            chained(RuntimeError(), socket.gaierror(-3, "no such name")),
            "this machine seems to be offline",
        ),
        (chained(RuntimeError("by a library"), TimeoutError()), "did not respond in time"),
        (ConnectionRefusedError(111, "Connection refused"), "cannot be reached (Connection refused)"),
        (ConnectionResetError(), "cannot be reached (ConnectionResetError)"),
    ],
)
def test_a_failure_is_told_in_plain_words(error, words):
    assert words in connection_failure(error)


def test_two_hosts_that_never_answer_take_less_than_ten_seconds():
    assert 2 * ANSWER_SECONDS < 10


def test_an_address_without_a_host_is_named_by_its_beginning():
    with pytest.raises(NetworkError) as caught:
        HttpClient({}, None, 1, 1.0, 1.0).send("x" * 150)
    assert caught.value.message.startswith(f"{'x' * 100} cannot be reached")
