"""`gpu-planner fleet`: the worst cards first, as a table and as JSON, from a Prometheus and from scrapes."""

import json
import time

import pytest
import scrapes
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.cli import main as cli
from planner.present.format import THIN


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["fleet", *arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def fleet():
    fake = FakePrometheus(dcgm_fleet(24, use=lambda place: 0.0 if place == 9 else 95.0), now=time.time())
    fake.seen = lambda labels: fake.now - (300 if labels["UUID"].startswith("GPU-00000004") else 2)
    return fake


def test_the_worst_cards_come_first_with_what_the_fleet_costs(fleet, capsys):
    with serving(fleet) as url:
        code, out, err = run(capsys, url, "--worst", "2")
    assert code == 0
    assert out.startswith("24 GPUs on 3 hosts: 1 silent and 1 idle, which costs $")
    assert f"kWh in the last 24{THIN}h" in out
    assert "renting them all" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("node")]
    assert [row[:2] for row in rows] == [["node1", "3"], ["node2", "1"]]
    assert "and 22 more; --worst N shows N GPUs" in out
    assert "note: Not exported here" in err


def test_hosts_are_chosen_by_pattern_and_an_unknown_one_is_named(fleet, capsys):
    with serving(fleet) as url:
        code, out, _ = run(capsys, url, "--host", "node3")
        assert code == 0
        assert {line.split()[0] for line in out.splitlines() if line.startswith("node")} == {"node3"}
        code, _, err = run(capsys, url, "--host", "nod")
    assert (code, "no host fits nod" in err, "Hosts are: node1, node2, node3." in err) == (2, True, True)


def test_json_has_cards_costs_and_servers(fleet, capsys):
    labels = {"instance": "10.0.0.0:8000"}
    fleet.samples += [("vllm:num_requests_running", labels, 2.0), ("vllm:generation_tokens_total", labels, 3e4)]
    with serving(fleet) as url:
        code, out, _ = run(capsys, url, "--json", "--worst", "1")
        table = run(capsys, url)[1]
    found = json.loads(out)
    assert code == 0
    assert (len(found["cards"]), found["cards"][0]["is_silent"], found["cards"][0]["host"]) == (1, True, "node1")
    assert found["cards"][0]["readings"]["power_watts"] is None
    assert found["servers"][0]["output_tokens_per_s"] == 100.0
    assert found["servers"][0]["cards"] == 8
    assert found["costs"]["idle"] == 1
    assert "100.0 output tokens/s" in table
    assert "per million output tokens" in table


def test_scrapes_are_read_without_a_prometheus(tmp_path, capsys):
    (tmp_path / "a.prom").write_text(scrapes.DCGM)
    code, out, _ = run(capsys, str(tmp_path / "a.prom"))
    assert code == 0
    assert "last Xid 79" in out


def test_a_narrow_table_cuts_no_name_of_a_host(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "a.prom").write_text(scrapes.DCGM.replace("dgx-2", "ip-10-0-112-217"))
    assert "ip-10-0-112-217" in run(capsys, str(tmp_path / "a.prom"))[1]


def test_what_fails_is_an_error_with_a_hint(capsys, tmp_path, monkeypatch):
    with serving(lambda *_: (401, {}, b"")) as url:
        code, _, err = run(capsys, url)
        assert (code, "wants a sign-in (401)" in err, "hint:" in err) == (3, True, True)
        monkeypatch.delenv("GPU_PLANNER_FLEET_SECRET", raising=False)
        code, _, err = run(capsys, url, "--token")
        assert (code, "GPU_PLANNER_FLEET_SECRET has no password or token" in err) == (2, True)
        (tmp_path / "secret").write_text("wrong")
        assert run(capsys, url, "--user", "me", "--secret", f"file:{tmp_path / 'secret'}")[0] == 3
        assert "cannot go with --user" in run(capsys, url, "--user", "me", "--token")[2]
        assert "secret" in run(capsys, url, "--user", "me", "--secret", "literal")[2]
