"""Requests over real HTTP and TLS to servers that misbehave."""

import re
import socket
import ssl
import threading
from pathlib import Path

import pytest
from fleet_kit import serving

from planner.errors import NetworkError, SpecError
from planner.network import HttpClient, answer_within, connection_failure

DATA = Path(__file__).parent.parent / "fleet" / "data"


def client(most_bytes=1_000_000, seconds=10.0, stop=lambda: False, ca=None, **headers) -> HttpClient:
    return HttpClient(headers, ca, most_bytes, seconds, seconds, stop)


def tls(name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / f"{name}.pem")
    return context


def test_a_form_is_posted_with_the_headers_and_any_status_returned():
    seen = []

    def answer(path, form, headers):
        seen.append((path, form, headers["authorization"]))
        return 418, {"X-Kind": "tea"}, b"pot"

    with serving(answer) as url:
        reply = client(Authorization="Bearer t").send(f"{url}/a", b"query=up")
    assert (reply.status, reply.content, reply.headers["X-Kind"]) == (418, b"pot", "tea")
    assert seen == [("/a", {"query": "up"}, "Bearer t")]


def test_a_redirect_is_followed_on_the_same_host_only():
    places = {"/old": "/new", "/round": "/round", "/away": "http://127.0.0.1:9/x", "/up": "https://127.0.0.1/"}

    def answer(path, _form, _headers):
        return (302, {"Location": places[path]}, b"") if path in places else (200, {}, path.encode())

    with serving(answer) as url:
        assert client().send(f"{url}/old").content == b"/new"
        with pytest.raises(NetworkError, match="redirects too often"):
            client().send(f"{url}/round")
        with pytest.raises(NetworkError, match=r"redirects to http://127\.0\.0\.1:9, which is not followed"):
            client().send(f"{url}/away")
        with pytest.raises(NetworkError, match="which is not followed"):
            client().send(f"{url}/up")


def test_what_is_too_long_cut_or_compressed_is_named():
    pages = {
        "/long": (200, {}, b"x" * 2_000_000),
        "/cut": (200, {"Content-Length": "100"}, b"x" * 60),
        "/zip": (200, {"Content-Encoding": "gzip"}, b"x"),
    }
    with serving(lambda path, _form, _headers: pages[path]) as url:
        for path, words in (
            ("/long", "sends more than 1,000,000 bytes"),
            ("/cut", "ended its response 40 bytes early"),
            ("/zip", "compressed response that was not requested"),
        ):
            with pytest.raises(NetworkError, match=words):
                client(seconds=1.0).send(f"{url}{path}")


def test_a_slow_server_is_given_up_and_a_cancelled_request_ends():
    over = threading.Event()

    def answer(_path, _form, _headers):
        over.wait(10)
        return 200, {}, b"late"

    with serving(answer) as url:
        with pytest.raises(NetworkError, match="did not respond in time"):
            client(seconds=0.1).send(url)
        with pytest.raises(NetworkError, match=r"the request to 127\.0\.0\.1:\d+ was cancelled"):
            client(stop=lambda: True).send(url)
        over.set()


def test_an_answer_that_is_still_wanted_comes():
    over = threading.Event()
    threading.Timer(0.1, over.set).start()
    assert answer_within(5, lambda: over.wait(5), lambda: False) is True


def test_certificates_are_checked_and_an_own_authority_is_trusted():
    with serving(lambda *_: (200, {}, b"ok"), tls("here")) as url:
        assert client(ca=DATA / "here.pem").send(url).content == b"ok"
        with pytest.raises(NetworkError, match="no known authority signed"):
            client().send(url)
        with pytest.raises(NetworkError, match=r"cannot be reached|ended|Connection"):
            client().send(url.replace("https", "http"))
    with (
        serving(lambda *_: (200, {}, b"ok"), tls("elsewhere")) as url,
        pytest.raises(NetworkError, match="certificate for another address"),
    ):
        client(ca=DATA / "elsewhere.pem").send(url)
    with serving(lambda *_: (200, {}, b"ok")) as url, pytest.raises(NetworkError, match="does not answer with TLS"):
        client().send(url.replace("http", "https"))


def test_a_wrong_file_of_authorities_or_address_is_named(tmp_path):
    (tmp_path / "empty.pem").write_text("nothing")
    for name, reason in (("missing.pem", "cannot be read: No such file"), ("empty.pem", "holds no certificate$")):
        with pytest.raises(SpecError) as told:
            client(ca=tmp_path / name)
        assert re.search(f"{name} {reason}", told.value.reason)
    with pytest.raises(NetworkError, match=r"^no address"):
        client().send("no address")


def test_an_unknown_fault_of_a_certificate_is_told_as_openssl_does():
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = 23, "certificate revoked"
    assert connection_failure(error) == "has an invalid certificate (certificate revoked)"
    error.verify_code = 10
    assert connection_failure(error) == "has a certificate that has expired"
    assert "offline" in connection_failure(socket.gaierror(-2, "no such name"))
