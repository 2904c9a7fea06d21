"""Fetching over real HTTP from a server that misbehaves."""

import hashlib
import socket
from functools import partial

import pytest
from price_server import PriceServer, send

from planner.cost.price_feeds.download import Fetcher
from planner.errors import PriceError

HTTP = frozenset({"http"})


def fetcher(prices: PriceServer, **options) -> Fetcher:
    return Fetcher(frozenset({prices.host}), schemes=HTTP, answer_seconds=0.5, **options)


def test_a_file_comes_with_where_from_and_its_digest(prices):
    prices.files["/list"] = b"prices"
    found = fetcher(prices).fetch(f"{prices.base}/list")
    assert found.content == b"prices"
    assert found.url == f"{prices.base}/list"
    assert found.sha256 == hashlib.sha256(b"prices").hexdigest()
    assert found.fetched_at.endswith("+00:00")
    assert prices.headers[0]["User-Agent"] == "gpu-planner"
    assert "Cookie" not in prices.headers[0]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.org/list", "not one of the hosts"),
        ("ftp://127.0.0.1/list", "not fetched over ftp"),
        ("file:///etc/passwd", "not fetched over file"),
        ("127.0.0.1/list", "no protocol"),
    ],
)
def test_only_allowed_hosts_and_protocols_are_asked(prices, url, reason):
    with pytest.raises(PriceError, match=reason):
        fetcher(prices).fetch(url)
    assert prices.asked == []


def test_without_a_certificate_nothing_is_fetched_outside_of_tests(prices):
    with pytest.raises(PriceError, match="not fetched over http"):
        Fetcher(frozenset({prices.host})).fetch(f"{prices.base}/list")


def redirect(to: str, handler) -> None:
    send(handler, b"", 302, Location=to)


def test_a_redirect_is_followed_to_an_allowed_host_only(prices):
    prices.files["/old"] = partial(redirect, "/new")
    prices.files["/new"] = b"here"
    prices.files["/away"] = partial(redirect, "http://example.org/list")
    prices.files["/down"] = partial(redirect, "file:///etc/passwd")
    prices.files["/round"] = partial(redirect, "/round")
    assert fetcher(prices).fetch(f"{prices.base}/old").content == b"here"
    for path, reason in (("/away", "not one of the hosts"), ("/down", "over file"), ("/round", "redirects too often")):
        with pytest.raises(PriceError, match=reason):
            fetcher(prices).fetch(f"{prices.base}{path}")
    assert len(prices.asked) < 10


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503, 304])
def test_another_status_is_told(prices, status):
    prices.files["/list"] = lambda handler: send(handler, b"", status)
    with pytest.raises(PriceError, match=f"status {status}"):
        fetcher(prices).fetch(f"{prices.base}/list")


def test_too_much_is_not_read_to_its_end(prices):
    def endless(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not prices.over.is_set():
            handler.wfile.write(b"x" * 65_536)

    prices.files["/list"] = endless
    with pytest.raises(PriceError, match="sends more than the limit of 100,000 bytes"):
        fetcher(prices).fetch(f"{prices.base}/list", 100_000)


def test_a_server_that_says_nothing_is_left(prices):
    prices.files["/list"] = lambda _handler: prices.over.wait(20)
    with pytest.raises(PriceError, match="did not respond in time") as caught:
        fetcher(prices).fetch(f"{prices.base}/list")
    assert caught.value.environment


def test_a_host_that_said_nothing_is_not_asked_again(prices):
    prices.files["/list"] = lambda _handler: prices.over.wait(20)
    patient = fetcher(prices)
    for file in ("list", "other"):
        with pytest.raises(PriceError, match="did not respond in time"):
            patient.fetch(f"{prices.base}/{file}")
    assert prices.asked == ["/list"]


def drip(prices: PriceServer, handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        if prices.over.wait(0.02):
            break
        handler.wfile.write(b"x")


def test_a_server_that_drips_is_left_when_the_time_is_over(prices):
    prices.files["/list"] = partial(drip, prices)
    with pytest.raises(PriceError, match="longer than"):
        fetcher(prices, total_seconds=0.3).fetch(f"{prices.base}/list")


def test_cancelling_ends_it(prices):
    prices.files["/list"] = partial(drip, prices)
    with pytest.raises(PriceError, match="cancelled"):
        fetcher(prices, stop=lambda: True).fetch(f"{prices.base}/list")


def test_what_breaks_off_is_refused(prices):
    def cut(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x" * 10)

    def cut_chunk(handler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"ff\r\nonly this")

    prices.files["/list"], prices.files["/chunk"] = cut, cut_chunk
    for path in ("/list", "/chunk"):
        with pytest.raises(PriceError):
            fetcher(prices).fetch(f"{prices.base}{path}")


def test_compression_on_the_way_is_refused(prices):
    prices.files["/list"] = lambda handler: send(handler, b"x", Content_Encoding="gzip")
    with pytest.raises(PriceError, match="compressed"):
        fetcher(prices).fetch(f"{prices.base}/list")
    assert prices.headers[0]["Accept-Encoding"] == "identity"


def test_junk_instead_of_http_is_told(prices):
    def junk(handler) -> None:
        handler.wfile.write(b"\x00\x01 no http at all\r\n\r\n")

    prices.files["/list"] = junk
    with pytest.raises(PriceError, match="cannot be reached"):
        fetcher(prices).fetch(f"{prices.base}/list")


def test_nobody_there_is_told():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(PriceError, match="cannot be reached") as caught:
        Fetcher(frozenset({"127.0.0.1"}), schemes=HTTP).fetch(f"http://127.0.0.1:{port}/list")
    assert caught.value.environment
    assert "stay in use" in caught.value.hint


def busy_once(prices: PriceServer, wait: str, handler) -> None:
    if len(prices.asked) == 1:
        send(handler, b"", 429, Retry_After=wait)
    else:
        send(handler, b"prices")


def test_a_busy_server_is_asked_once_more_after_the_time_it_names(prices):
    prices.files["/list"] = partial(busy_once, prices, "1")
    assert fetcher(prices).fetch(f"{prices.base}/list").content == b"prices"
    assert len(prices.asked) == 2


@pytest.mark.parametrize("wait", ["3600", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", ""])
def test_a_server_that_is_busy_for_long_is_left(prices, wait):
    prices.files["/list"] = partial(busy_once, prices, wait)
    with pytest.raises(PriceError, match=r"Retry-After|too many requests"):
        fetcher(prices).fetch(f"{prices.base}/list")
    assert len(prices.asked) == 1


def test_a_server_that_is_always_busy_is_not_asked_for_ever(prices):
    prices.files["/list"] = lambda handler: send(handler, b"", 429, Retry_After="0")
    with pytest.raises(PriceError, match="Retry-After: 0"):
        fetcher(prices).fetch(f"{prices.base}/list")
    assert len(prices.asked) == 2


def test_waiting_ends_when_nobody_waits_any_more(prices):
    prices.files["/list"] = lambda handler: send(handler, b"", 429, Retry_After="9")
    asked = []
    with pytest.raises(PriceError):
        fetcher(prices, stop=lambda: asked.append("whether to stop") or True).fetch(f"{prices.base}/list")
    # Before it waits, and whether it asks once more.
    assert len(asked) == 2
