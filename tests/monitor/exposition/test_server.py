"""Serving: paths, a token, TLS, addresses, and a text file."""

import errno
import shutil
import socket
import ssl
import subprocess
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

import pytest

from planner.errors import SpecError
from planner.monitor.exposition.collector import Exposition
from planner.monitor.exposition.server import ListenAddress, MetricsServer, write_textfile

FREE = ListenAddress("127.0.0.1", 0)


def asked(server, path="/metrics", token=None, context=None):
    """Return status and text of an answer."""
    parts = urlsplit(server.url)
    made = HTTPConnection(parts.netloc) if context is None else HTTPSConnection(parts.netloc, context=context)
    with closing(made) as connection:
        connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_metrics_are_served_at_their_path_and_nothing_elsewhere():
    with MetricsServer(Exposition(), FREE) as server:
        assert server.url.startswith("http://127.0.0.1:")
        status, text = asked(server)
        assert (status, "gpu_planner_build_info" in text) == (200, True)
        assert asked(server, "/secrets")[0] == 404
        with pytest.raises(SpecError, match=r"cannot serve at 127\.0\.0\.1"):
            MetricsServer(Exposition(), FREE._replace(port=urlsplit(server.url).port))


def test_a_token_is_required_where_there_is_one():
    with MetricsServer(Exposition(), FREE, "sésame") as server:
        assert [asked(server, token=token)[0] for token in (None, "open", "s\xe9same")] == [401, 401, 401]
    with MetricsServer(Exposition(), FREE, "sesame") as server:
        assert [asked(server, token=token)[0] for token in (None, "open", "sesame")] == [401, 401, 200]


def test_with_a_certificate_answers_are_encrypted_and_a_client_without_keeps_none_waiting(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    words = [openssl, *made, *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    with MetricsServer(Exposition(), FREE, certificate=certificate, key=key) as server:
        assert server.url.startswith("https://")
        with closing(socket.create_connection(("127.0.0.1", urlsplit(server.url).port))):
            assert asked(server, context=ssl.create_default_context(cafile=certificate))[0] == 200
    with pytest.raises(SpecError, match=r"key.pem and .*certificate.pem"):
        MetricsServer(Exposition(), FREE, certificate=key, key=certificate)
    with pytest.raises(SpecError, match=r"key\.pem"):
        MetricsServer(Exposition(), FREE, certificate=key)


def test_addresses_are_read_and_those_of_this_machine_only_are_the_default():
    assert ListenAddress.parse("9836") == ("127.0.0.1", 9836)
    assert ListenAddress.parse("[::1]:1") == ("::1", 1)
    public = [ListenAddress.parse(text).is_public for text in ("9836", "localhost:1", "0.0.0.0:1", "[::]:1")]
    assert public == [False, False, True, True]
    for wrong in ("", "host", "host:", "host:70000", "::1:80", "-1", "a b:1"):
        with pytest.raises(SpecError, match="is not"):
            ListenAddress.parse(wrong)


def test_an_ipv6_address_is_served_at_and_written_in_brackets():
    with closing(socket.socket(socket.AF_INET6)) as probe:
        if probe.connect_ex(("::1", 1)) == errno.EADDRNOTAVAIL:
            pytest.skip("this machine has no IPv6")
    with MetricsServer(Exposition(), ListenAddress("::1", 0)) as server:
        assert server.url.startswith("http://[::1]:")
        assert asked(server)[0] == 200


def test_a_text_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "gpu.prom"
    path.write_text("old")
    write_textfile(Exposition(), path)
    assert path.read_text().endswith("\n")
    assert "gpu_planner_build_info" in path.read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["gpu.prom"]
