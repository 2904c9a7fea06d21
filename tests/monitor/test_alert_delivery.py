"""Delivery of alerts: to a command without a shell, and to a webhook, with what goes wrong."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import pytest

from planner.errors import PlannerError, SpecError
from planner.monitor import alert_delivery
from planner.monitor.alert_delivery import TOKEN_VARIABLE, AlertDelivery, post_to_webhook, run_command
from planner.monitor.settings import AlertTargets

ALERT = {"kind": "xid", "title": "GPU 0: Xid 79; $(reboot)", "advice": "Check it.", "seen": 79, "pid": None}


@pytest.fixture
def hook():
    """Give an address, the requests to it, and the statuses that it answers with."""
    requests, statuses = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.headers["Content-Type"], self.headers["Authorization"], json.loads(body)))
            status = statuses.pop() if statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/secret", requests, statuses
        server.shutdown()
        thread.join()


def test_a_command_gets_the_alert_on_its_input_and_in_variables_and_no_shell(tmp_path, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    script, out = tmp_path / "script.py", tmp_path / "out.json"
    script.write_text(
        "import json, os, sys\n"
        "told = {name: value for name, value in os.environ.items() if 'ALERT' in name}\n"
        f"json.dump([json.load(sys.stdin), told, sys.argv[1:]], open({str(out)!r}, 'w'))\n"
    )
    run_command(f"{sys.executable} {script} 'two words' $HOME", ALERT)
    alert, variables, words = json.loads(out.read_text())
    assert alert == ALERT
    assert variables == {
        "GPU_PLANNER_ALERT_KIND": "xid",
        "GPU_PLANNER_ALERT_TITLE": ALERT["title"],
        "GPU_PLANNER_ALERT_ADVICE": "Check it.",
        "GPU_PLANNER_ALERT_SEEN": "79",
    }
    assert words == ["two words", "$HOME"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/no/such/program", "No such file"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "ended with 3$"),
        (f"{sys.executable} -c 'raise SystemExit(\"broken\")'", r"ended with 1 \(broken\)"),
        (f"{sys.executable} -c 'import time; time.sleep(60)'", "took longer than 2 seconds"),
    ],
)
def test_a_command_that_fails_is_named(command, message, monkeypatch):
    monkeypatch.setattr(alert_delivery, "_COMMAND_SECONDS", 2.0 if "longer" in message else 30.0)
    with pytest.raises(PlannerError, match=message):
        run_command(command, ALERT)


def test_a_webhook_gets_the_alert_as_json_with_a_text_to_show(hook, monkeypatch):
    url, requests, _statuses = hook
    post_to_webhook(url, ALERT)
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    post_to_webhook(url, ALERT)
    body = {**ALERT, "text": f"{ALERT['title']}. Check it."}
    assert requests == [("application/json", None, body), ("application/json", "Bearer secret", body)]


def test_a_webhook_that_refuses_or_sends_elsewhere_is_an_error_without_its_secret_path(hook):
    url, _requests, statuses = hook
    for status, message in (
        (500, "127.0.0.1 answered with status 500"),
        (302, "redirects to http://elsewhere.invalid"),
    ):
        statuses.append(status)
        with pytest.raises(PlannerError, match=message) as caught:
            post_to_webhook(url, ALERT)
        assert "secret" not in caught.value.message


def test_alerts_are_delivered_in_the_background_and_failures_are_told(hook):
    url, requests, statuses = hook
    statuses.append(500)
    failures, failed = [], Event()

    def on_failure(sentence):
        failures.append(sentence)
        failed.set()

    with AlertDelivery(AlertTargets(webhook=url), on_failure) as delivery:
        delivery.send(ALERT)
        assert failed.wait(30)
        delivery.send(ALERT)
    assert len(requests) == 2
    (sentence,) = failures
    assert sentence.startswith(f"The alert “{ALERT['title']}” was not delivered: 127.0.0.1")
    with AlertDelivery(AlertTargets(), on_failure) as nowhere:
        nowhere.send(ALERT)


def test_targets_are_checked():
    assert AlertTargets(command=" notify-send x ", webhook=" https://example.com/x ") == AlertTargets(
        command="notify-send x", webhook="https://example.com/x"
    )
    for field, value in (("webhook", "http://example.com"), ("webhook", "https:"), ("command", "say 'x")):
        with pytest.raises(SpecError, match=field):
            AlertTargets(**{field: value})
