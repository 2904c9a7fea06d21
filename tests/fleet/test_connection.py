"""Connections say where the secret is, and never hold it."""

import sys
from types import SimpleNamespace

import pytest

from planner.errors import MissingPackageError, PlannerError, SpecError
from planner.fleet.connection import KEYRING_SERVICE, FleetConnection, keep_in_keyring

URL = "https://prometheus.example.org/prefix"


def bearer(secret: str) -> FleetConnection:
    return FleetConnection(url=URL, sign_in="bearer", secret=secret)


def test_secrets_come_from_the_environment_or_a_file(tmp_path):
    assert bearer("env:TOKEN").headers({"TOKEN": " abc\n"}) == {"Authorization": "Bearer abc"}
    (tmp_path / "token").write_text("from file\n")
    assert bearer(f"file:{tmp_path / 'token'}").headers({}) == {"Authorization": "Bearer from file"}
    assert FleetConnection(url=URL, tenant="t").headers({}) == {"X-Scope-OrgID": "t"}


def test_secrets_come_from_the_keyring(monkeypatch):
    kept = {}
    keyring = SimpleNamespace(
        get_password=lambda *name: kept.get(name), set_password=lambda *item: kept.update({item[:2]: item[2]})
    )
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    with pytest.raises(SpecError, match="the keyring has no password or token"):
        bearer("keyring").headers({})
    keep_in_keyring(URL, "kept")
    assert kept == {(KEYRING_SERVICE, URL): "kept"}
    assert bearer("keyring").headers({}) == {"Authorization": "Bearer kept"}
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(MissingPackageError, match="keyring is not installed"):
        bearer("keyring").headers({})


@pytest.mark.parametrize(
    ("secret", "environment", "words"),
    [
        ("env:TOKEN", {}, "the environment variable TOKEN has no password or token"),
        ("env:TOKEN", {"TOKEN": "a\nHeader: b"}, "of several lines"),
        ("file:/nowhere/token", {}, "/nowhere/token cannot be read"),
    ],
)
def test_a_missing_secret_is_named(secret, environment, words):
    with pytest.raises(SpecError, match=words):
        bearer(secret).headers(environment)


def test_addresses_are_told_apart_and_must_not_hold_a_password():
    assert not FleetConnection(url=URL).is_scrape
    assert FleetConnection(url="http://node:9400/metrics").is_scrape
    assert FleetConnection(url="saved.prom").is_scrape
    assert FleetConnection(url="/tmp/saved.prom").address == "saved.prom"
    assert FleetConnection(url="http://node:9400/metrics").address == "node:9400"
    with pytest.raises(SpecError, match="must not hold a password"):
        FleetConnection(url="https://me:secret@example.org").client({})
    with pytest.raises(SpecError, match="has a query"):
        FleetConnection(url="https://example.org/?a=b").client({})
    with pytest.raises(PlannerError):
        FleetConnection(url=URL, secret="literal")


@pytest.mark.parametrize(
    "url", ["", "http://", "http://[", "https://h:65536", "http://h:0", "http://a b", "http://h:x"]
)
def test_an_address_that_leads_nowhere_is_refused(url):
    with pytest.raises(SpecError, match="url: must be the address of a server or a file") as caught:
        FleetConnection(url=url)
    assert "http://HOST:PORT" in caught.value.hint


def test_addresses_and_paths_are_taken_as_they_are():
    for url in ("http://[::1]:9090/prefix", "https://h", "a scrape.prom", "C:\\scrapes\\node.prom", "prometheus:9090"):
        assert FleetConnection(url=url).url == url
    with pytest.raises(SpecError, match="tenant: must be of printable ASCII"):
        FleetConnection(url=URL, tenant="a\nb")
    with pytest.raises(SpecError, match="tenant: must be of printable ASCII"):
        FleetConnection(url=URL, tenant="ä")
