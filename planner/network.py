"""Requests to other machines: a time limit that holds for every part of one, and failures in plain words.

No cookies, no redirects to other hosts, certificates are always checked, and no compression in transfer, as a small
response could unpack to a large one.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as futures_wait
from email.message import Message
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, Final, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from planner.errors import NetworkError, SpecError

_Answer = TypeVar("_Answer")

_LOOK_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 4.0
"""Longest wait for an answer; two hosts that never answer take less than ten seconds together."""


def answer_within(seconds: float, ask: Callable[[], _Answer], stop: Callable[[], bool] | None = None) -> _Answer:
    """Return the result of `ask`, which waits for another machine.

    The limit of a socket holds for each address of a host anew, and for the search of its name not at all.

    Raises:
        TimeoutError: If there is no answer after `seconds`.
        InterruptedError: If `stop` says before that the answer is no longer wanted.
    """
    answer: Future[_Answer] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 - raised again by the thread that asked
            answer.set_exception(error)

    Thread(target=wait, name="network", daemon=True).start()
    deadline = time.monotonic() + seconds
    while stop is not None and not answer.done() and time.monotonic() < deadline:
        if stop():
            raise InterruptedError("was no longer wanted")
        futures_wait((answer,), min(_LOOK_SECONDS, deadline - time.monotonic()))
    return answer.result(max(deadline - time.monotonic(), 0.0))


_SELF_SIGNED: Final = "has a certificate that no known authority signed; give the file of its authority, if it is yours"
_CERTIFICATE_FAULTS: Final = {
    10: "has a certificate that has expired",
    18: _SELF_SIGNED,
    19: _SELF_SIGNED,
    20: _SELF_SIGNED,
    62: "has a certificate for another host; use the name that the certificate is for",
    64: "has a certificate for another address; use the name that the certificate is for",
}
"""What is wrong with a certificate, by OpenSSL's verify codes (x509_vfy.h)."""


def connection_failure(error: BaseException) -> str:
    """Return why another machine did not answer, for a message that begins with its name."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "cannot be reached: its address was not found; this machine seems to be offline"
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return "did not respond in time"
    refused = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if refused is not None:
        return _CERTIFICATE_FAULTS.get(refused.verify_code, f"has an invalid certificate ({refused.verify_message})")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "does not answer with TLS; its address may begin with http:// instead of https://"
    last = causes[-1]
    reason = getattr(last, "strerror", None) or str(last) or type(last).__name__
    return f"cannot be reached ({reason[:200]})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that it was raised from or has as its reason."""
    cause: object = error
    while isinstance(cause, BaseException):
        yield cause
        cause = cause.__cause__ or cause.__context__ or getattr(cause, "reason", None)


class HttpReply(NamedTuple):
    """Response of a server: its status, whatever it is, its content and its headers."""

    status: int
    content: bytes
    headers: Message


class NoRedirects(HTTPRedirectHandler):
    """Handler that leaves redirects to the caller, which checks the host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        """Return no new request."""
        return None


REDIRECTS: Final = (301, 302, 303, 307, 308)
_MOST_REDIRECTS: Final = 3
_PIECE_BYTES: Final = 262_144
_AGENT: Final = "gpu-planner"


class HttpClient:
    """Sends requests within the same limits and with the same headers, which only the requested host gets.

    Args:
        headers: Further headers, such as `Authorization`.
        ca_file: Certificates of the authorities to trust instead of the system's, in PEM.
        most_bytes: Longest content of a response.
        answer_seconds: Longest wait for the beginning of a response.
        total_seconds: Longest time for all of it.
        stop: Returns whether the request was cancelled.

    Raises:
        SpecError: If `ca_file` cannot be read.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        ca_file: Path | None,
        most_bytes: int,
        answer_seconds: float,
        total_seconds: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity", **headers}
        self._most_bytes, self._answer_seconds, self._total_seconds = most_bytes, answer_seconds, total_seconds
        self._stop = stop
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except ssl.SSLError as error:
            raise SpecError("ca", f"{ca_file} holds no certificate", "Name a file in PEM format.") from error
        except OSError as error:
            reason = f"{ca_file} cannot be read: {error.strerror or error}"
            raise SpecError("ca", reason, "Name the file of a certificate in PEM format.") from error
        self._opener = build_opener(NoRedirects, HTTPSHandler(context=context))

    def send(self, url: str, form: bytes | None = None) -> HttpReply:
        """Return the response to GET, or to POST of `form`.

        Raises:
            NetworkError: If the host cannot be reached or redirects to another, if its response is too long, takes too
                long or ends early, or if the request is cancelled.
        """
        deadline, asked = time.monotonic() + self._total_seconds, url
        for _ in range(_MOST_REDIRECTS + 1):
            reply, place = self._send_once(url, form, deadline), url
            if reply.status not in REDIRECTS or not reply.headers.get("Location"):
                return reply
            url = urljoin(place, str(reply.headers["Location"]))
            if _origin(url) != _origin(asked):
                raise NetworkError(
                    f"{_host(asked)} redirects to {_origin(url)}, which is not followed",
                    "It may want a sign-in; otherwise give that address itself.",
                )
        raise NetworkError(f"{_host(asked)} redirects too often", "Check the address.")

    def _send_once(self, url: str, form: bytes | None, deadline: float) -> HttpReply:
        seconds = max(deadline - time.monotonic(), 0.0)
        try:
            return answer_within(seconds, partial(self._exchange, url, form), self._stop)
        except InterruptedError as error:
            raise NetworkError(f"the request to {_host(url)} was cancelled") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason, _, remedy = connection_failure(error).partition("; ")
            hint = f"{remedy[:1].upper()}{remedy[1:]}." if remedy else _CHECK_ADDRESS
            raise NetworkError(f"{_host(url)} {reason}", hint) from error

    def _exchange(self, url: str, form: bytes | None) -> HttpReply:
        request = Request(url, form, self._headers)
        try:
            response = self._opener.open(request, timeout=self._answer_seconds)
        except HTTPError as error:
            response = error
        with response:
            return HttpReply(response.status, self._content(response, url), response.headers)

    def _content(self, response: http.client.HTTPResponse, url: str) -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise NetworkError(f"{_host(url)} sent a compressed response that was not requested", _CHECK_ADDRESS)
        stated, pieces, size = response.headers.get("Content-Length", ""), [], 0
        while not self._stop() and (piece := response.read1(_PIECE_BYTES)):
            pieces.append(piece)
            size += len(piece)
            if size > self._most_bytes:
                raise NetworkError(
                    f"{_host(url)} sends more than {self._most_bytes:,} bytes", "Ask for fewer GPUs or hosts."
                )
        if stated.isdigit() and size < int(stated):
            raise NetworkError(
                f"{_host(url)} ended its response {int(stated) - size:,} bytes early",
                "Try again; a proxy between may cut long answers.",
            )
        return b"".join(pieces)


_CHECK_ADDRESS: Final = "Check the address and the network."


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or url[:100]
