"""Downloads of files over HTTPS from allowed hosts, within limits on time and size.

No cookies, no credentials, no redirects to other hosts, and no compression in transfer, as a small response could
unpack to a large one. Nothing is written to disk here.
"""

import hashlib
import http.client
import time
from datetime import UTC, datetime
from email.message import Message
from functools import partial
from typing import Final, NamedTuple, cast
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import Request, build_opener

from planner.base import Stop
from planner.errors import PriceError
from planner.network import ANSWER_SECONDS, REDIRECTS, NoRedirects, answer_within, connection_failure
from planner.units import MIB

TOTAL_SECONDS: Final = 120.0
"""Timeout for the download of a whole file, in seconds."""
MOST_BYTES: Final = 20 * MIB
_LONGEST_WAIT_SECONDS: Final = 10
_WAITS: Final = {str(seconds): seconds for seconds in range(_LONGEST_WAIT_SECONDS + 1)}
"""Retry-After header values that are honored, in seconds; longer waits are refused."""
_POLL_SECONDS: Final = 0.05
_MOST_REDIRECTS: Final = 3
_PIECE_BYTES: Final = 65_536
_TOO_MANY_REQUESTS: Final = 429
_AGENT: Final = "gpu-planner"
_CHECK_CONNECTION: Final = "Check the connection and try again; current prices stay in use."
_TRY_LATER: Final = "Try again later; current prices stay in use."


class FetchedFile(NamedTuple):
    """A downloaded file: its URL, content, time of download (ISO 8601, UTC) and SHA-256."""

    content: bytes
    url: str
    fetched_at: str
    sha256: str


class Fetcher:
    """Downloader for files on `hosts`; `schemes` other than HTTPS are for tests, whose server has no certificate.

    A host that did not answer once is not asked again. `stop` cancels a download, and `answer_seconds` and
    `total_seconds` are its time limits.
    """

    def __init__(
        self,
        hosts: frozenset[str],
        stop: Stop = lambda: False,
        schemes: frozenset[str] = frozenset({"https"}),
        answer_seconds: float = ANSWER_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._hosts, self._stop, self._schemes = hosts, stop, schemes
        self._answer_seconds, self._total_seconds = answer_seconds, total_seconds
        self._opener = build_opener(NoRedirects)
        self._silent: dict[str, PriceError] = {}

    def fetch(self, url: str, most_bytes: int = MOST_BYTES) -> FetchedFile:
        """Download the file at `url`, of at most `most_bytes`.

        Raises:
            PriceError: If the host is not allowed or cannot be reached, if it refuses, sends more than `most_bytes` or
                takes too long, or if the download is cancelled.
        """
        deadline = time.monotonic() + self._total_seconds
        for _ in range(_MOST_REDIRECTS + 1):
            self._check_host(url)
            if _host_name(url) in self._silent:
                raise self._silent[_host_name(url)]
            answer = self._request(url, deadline, may_wait=True)
            if isinstance(answer, str):
                url = answer
                continue
            content = self._read_body(answer, url, most_bytes, deadline)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            return FetchedFile(content, url, now, hashlib.sha256(content).hexdigest())
        raise PriceError(_host_name(url), "redirects too often", _TRY_LATER)

    def _check_host(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in self._schemes:
            raise PriceError(_host_name(url), f"prices are not fetched over {parts.scheme or 'no protocol'}")
        if parts.hostname not in self._hosts:
            raise PriceError(_host_name(url), "is not one of the hosts that prices are fetched from")

    def _request(self, url: str, deadline: float, *, may_wait: bool) -> http.client.HTTPResponse | str:
        """Return the server's response, or the URL that the server redirects to."""
        request = Request(url, headers={"User-Agent": _AGENT, "Accept-Encoding": "identity"})
        try:
            ask = partial(self._opener.open, request, timeout=self._answer_seconds)
            response = cast("http.client.HTTPResponse", answer_within(self._answer_seconds, ask))
        except HTTPError as error:
            with error:
                if error.code in REDIRECTS and error.headers.get("Location"):
                    return urljoin(url, str(error.headers["Location"]))
                if error.code == _TOO_MANY_REQUESTS and may_wait and self._wait_if_short(error.headers, deadline):
                    return self._request(url, deadline, may_wait=False)
                raise PriceError(_host_name(url), _status_error(error), _TRY_LATER) from error
        except (OSError, http.client.HTTPException) as error:
            host = _host_name(url)
            self._silent[host] = PriceError(host, connection_failure(error), _CHECK_CONNECTION, environment=True)
            raise self._silent[host] from error
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            response.close()
            raise PriceError(_host_name(url), "sent a compressed response that was not requested", _TRY_LATER)
        return response

    def _wait_if_short(self, headers: Message, deadline: float) -> bool:
        """Wait for the time that a busy server requests, if this time is short; return whether to retry."""
        seconds = _WAITS.get(headers.get("Retry-After", ""))
        if seconds is None or seconds > deadline - time.monotonic():
            return False
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not self._stop():
            time.sleep(_POLL_SECONDS)
        return not self._stop()

    def _read_body(self, response: http.client.HTTPResponse, url: str, most_bytes: int, deadline: float) -> bytes:
        content = bytearray()
        with response:
            while True:
                if self._stop():
                    raise PriceError(_host_name(url), "fetching was cancelled")
                if time.monotonic() > deadline:
                    raise PriceError(
                        _host_name(url), f"took longer than {self._total_seconds:.0f} seconds", _CHECK_CONNECTION
                    )
                try:
                    piece = response.read1(_PIECE_BYTES)
                except (OSError, http.client.HTTPException) as error:
                    raise PriceError(
                        _host_name(url), connection_failure(error), _CHECK_CONNECTION, environment=True
                    ) from error
                if not piece:
                    break
                content += piece
                if len(content) > most_bytes:
                    raise PriceError(_host_name(url), f"sends more than the limit of {most_bytes:,} bytes", _TRY_LATER)
            _check_complete(response, url)
        return bytes(content)


def _check_complete(response: http.client.HTTPResponse, url: str) -> None:
    """Reject a truncated response, which is shorter than its stated length."""
    if response.length:
        raise PriceError(
            _host_name(url), f"ended the transfer {response.length:,} bytes early", _CHECK_CONNECTION, environment=True
        )


def _status_error(error: HTTPError) -> str:
    if error.code == _TOO_MANY_REQUESTS:
        wait = error.headers.get("Retry-After", "")
        return f"is busy (Retry-After: {wait[:40]})" if wait else "received too many requests"
    return f"responded with status {error.code}"


def _host_name(url: str) -> str:
    return urlsplit(url).hostname or url[:100]
