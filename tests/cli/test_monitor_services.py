"""`monitor` for other programs and of another machine: exposition, text file, rules, dashboard, alerts and SSH."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from fake_nvml_kit import LONGEST_SECONDS, A, B, card
from prometheus_client.parser import text_string_to_metric_families

from planner.cli import main as cli
from planner.present.format import THIN

PROMTOOL = shutil.which("promtool")


@contextmanager
def monitoring(environment, *words, **more):
    """Run the command meanwhile; give the process, and the lines of its stdout and stderr so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "monitor", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, **more},
        text=True,
        encoding="utf-8",
    )
    printed, errors = [], []
    threads = [
        Thread(target=lambda stream, lines: lines.extend(iter(stream.readline, "")), args=pair)
        for pair in ((process.stdout, printed), (process.stderr, errors))
    ]
    for thread in threads:
        thread.start()
    try:
        yield process, printed, errors
    finally:
        process.send_signal(signal.SIGINT)
        with process:
            process.wait(LONGEST_SECONDS)
            for thread in threads:
                thread.join()


def wait_for(found):
    """Return what `found` returns once it is something."""
    deadline = monotonic() + LONGEST_SECONDS
    while not (result := found()):
        assert monotonic() < deadline, "never found"
        sleep(0.02)
    return result


def served_url(errors) -> str:
    return wait_for(lambda: next((line.split()[1] for line in errors if line.startswith("Serving ")), None))


def scraped(url, **headers):
    with urlopen(Request(url, headers=headers), timeout=LONGEST_SECONDS) as answer:
        return answer.read().decode()


def samples_of(text):
    """Return the value of each sample by its name and labels, less those of the card."""
    return {
        (
            sample.name,
            *(f"{name}={value}" for name, value in sorted(sample.labels.items()) if name != "uuid"),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def promtool_check(kind, text, tmp_path):
    """Check with Prometheus' own tool, where it is installed."""
    if PROMTOOL is None:
        pytest.skip("promtool is not installed (on Debian: apt install prometheus)")
    if kind == "metrics":
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    else:
        file = tmp_path / "rules.yml"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_a_remote_card_with_an_xid_a_hang_and_a_loss_shows_in_json_exposition_and_terminal(ssh_server, fake_nvml):
    cards = (card(0, A), card(1, B), card(2, A.replace("a", "d")))
    fake_nvml.say(*cards)
    program = ssh_server.program("shown", fake_nvml.environment)
    address, client = str(ssh_server.address(program)), ssh_server.client("shown-client")
    with (
        monitoring(client, address, "--json", "--serve", "0", "--interval", "0.5") as (_process, lines, errors),
        monitoring(client, address, "--interval", "0.5") as (_process, page, _errors),
    ):
        url = served_url(errors)
        wait_for(lambda: sum('"devices":[{' in line for line in lines) > 2 and any("Test 2" in line for line in page))
        assert ("gpu_planner_gpu_state", "gpu=1", "state=ok") in samples_of(scraped(url))
        before = len(lines)
        hanging = card(1, B) | {"1.stall.nvmlDeviceGetPowerUsage": 1}
        lost = card(2, A.replace("a", "d")) | {"2.error.nvmlDeviceGetPowerUsage": 15}
        fake_nvml.say(card(0, A), hanging, lost, events=("0 8 31",))

        def found_at():
            """Return how many readings it took until all three show."""
            times = set()
            for line in lines[before:]:
                report = json.loads(line)
                times.add(report["state"]["monotonic_seconds"])
                kinds = {fault["kind"] for fault in report["state"]["faults"]}
                devices = report["devices"]
                if devices[0]["xids"] and devices[2]["state"] == "lost" and "card-not-answering" in kinds:
                    return len(times)
            return None

        # The reading that is being taken when the cards fail is not one of the two.
        assert wait_for(found_at) <= 3
        exposed = samples_of(scraped(url))
        assert exposed["gpu_planner_gpu_state", "gpu=1", "state=silent"] == 1
        assert exposed["gpu_planner_gpu_state", "gpu=2", "state=lost"] == 1
        assert exposed["gpu_planner_gpu_xid_events_total", "gpu=0", "xid=31"] == 1
        assert ("gpu_planner_gpu_utilization_ratio", "gpu=1") not in exposed
        machine = json.loads(lines[-1])["state"]["machine"]
        said = (machine, "lost", "the driver reported Xid 31", "GPU 1: the driver does not respond for this GPU")
        wait_for(lambda: all(words in "".join(page) for words in said))


def test_the_exposition_needs_no_card_and_is_well_formed(fake_nvml, tmp_path):
    fake_nvml.say(card(0, A), card(1, B, name="\\xf8"))
    textfile = tmp_path / "gpu.prom"
    words = ("--serve", "127.0.0.1:0", "--textfile", str(textfile))
    with monitoring(fake_nvml.environment, *words, GPU_PLANNER_METRICS_TOKEN="secret") as (_process, printed, errors):
        url = served_url(errors)
        with pytest.raises(HTTPError, match="401"):
            scraped(url)
        text = wait_for(
            lambda: "diagnosis" in (said := scraped(url, Authorization="Bearer secret")) and "sm_clock" in said and said
        )
        exposed = samples_of(text)
        assert exposed["gpu_planner_gpu_sm_clock_hertz", "gpu=0"] == 2.52e9
        assert exposed["gpu_planner_gpu_utilization_ratio", "gpu=0"] == 0.5
        assert "gpu_planner_gpu_power_watts" in wait_for(lambda: textfile.exists() and textfile.read_text())
    assert not textfile.exists()
    assert printed == []
    with monitoring({**fake_nvml.environment, "LD_LIBRARY_PATH": ""}, "--serve", "0") as (_process, _printed, errors):
        url = served_url(errors)
        wait_for(lambda: any(key[0] == "gpu_planner_fault" for key in samples_of(scraped(url))))
    promtool_check("metrics", text, tmp_path)


def test_alerts_reach_a_command_and_a_webhook_once(fake_nvml, tmp_path):
    received, heard = tmp_path / "received.jsonl", []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append((self.headers["Authorization"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        script = tmp_path / "alert.sh"
        script.write_text(f'cat >> {received}; echo " $GPU_PLANNER_ALERT_KIND" >> {received}; exit 3')
        fake_nvml.say(card(0, A), card(1, B))
        hook = f"http://127.0.0.1:{server.server_port}/alerts"
        words = ("--alert-command", f"sh {script}", "--alert-webhook", hook, "--interval", "0.2")
        with monitoring(fake_nvml.environment, *words, "--json", GPU_PLANNER_ALERT_TOKEN="t") as (
            _process,
            lines,
            errors,
        ):
            wait_for(lambda: any('"index":1' in line for line in lines))
            fake_nvml.say(card(0, A), card(1, B), events=("1 8 79", "1 8 79"))
            wait_for(lambda: heard and any("was not delivered" in line for line in errors))
        server.shutdown()
    ((token, body),) = heard
    assert token == "Bearer t"
    assert body["title"] == "GPU 1 Test 1: the driver reported Xid 79"
    assert body["advice"].startswith("The GPU fell off the bus")
    alert, kind = received.read_text().rsplit(" ", 1)
    assert json.loads(alert) == {name: value for name, value in body.items() if name != "text"}
    assert kind == "xid\n"


def test_thresholds_of_alerts_are_options(fake_nvml, tmp_path):
    received = tmp_path / "received"
    received.touch()
    script = tmp_path / "alert.sh"
    script.write_text(f'echo "$GPU_PLANNER_ALERT_TITLE" >> {received}')
    fake_nvml.say(card(0, A), events=("0 8 79",))
    words = ("--alert-command", f"sh {script}", "--alert-temperature", "55", "--alert-xid", "off", "--alert-after", "0")
    with monitoring(fake_nvml.environment, *words, "--alert-memory", "4 %", "--interval", "0.2"):
        wait_for(lambda: len(received.read_text().splitlines()) == 2)
    # The thresholds are those of the options, and an Xid is none of them.
    assert set(received.read_text().splitlines()) == {
        f"GPU 0 Test 0 is at 60{THIN}°C",
        f"GPU 0 Test 0 uses 4{THIN}% of its memory",
    }


def labels_text(labels):
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def test_rules_and_dashboard_are_printed_and_prometheus_accepts_the_rules(capsys, tmp_path):
    assert cli.main(["monitor", "--grafana-dashboard"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "GPU Planner"
    assert cli.main(["monitor", "--prometheus-rules"]) == 0
    rules = capsys.readouterr().out
    promtool_check("rules", rules, tmp_path)
    annotations = {rule["alert"]: rule["annotations"] for rule in yaml.safe_load(rules)["groups"][0]["rules"]}
    card = {"instance": "box", "gpu": "0", "uuid": "GPU-a"}
    # A series, its values at each minute, the alert, and the minutes at which it is silent and fires.
    cases = (
        ("gpu_planner_gpu_xid_events_total", {"xid": "79"}, "_ _ 1x9", "XidOffTheBus", 1, 3, "critical"),
        ("gpu_planner_gpu_xid_events_total", {"xid": "31"}, "1x40 2x9", "XidProgram", 30, 42, "warning"),
        ("gpu_planner_gpu_state", {"state": "lost"}, "0 0 1x9", "CardLost", 1, 2, "critical"),
        ("gpu_planner_gpu_state", {"state": "silent"}, "0 1x9", "CardSilent", 2, 4, "critical"),
    )
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": f"{name}{labels_text({**card, **labels})}", "values": values}],
            "alert_rule_test": [
                {"eval_time": f"{quiet}m", "alertname": f"GpuPlanner{alert}", "exp_alerts": []},
                {
                    "eval_time": f"{loud}m",
                    "alertname": f"GpuPlanner{alert}",
                    "exp_alerts": [
                        {
                            "exp_labels": {**card, **labels, "severity": severity},
                            "exp_annotations": {
                                name: text.replace("{{ $labels.gpu }}", "0")
                                .replace("{{ $labels.instance }}", "box")
                                .replace("{{ $labels.xid }}", labels.get("xid", ""))
                                for name, text in annotations[f"GpuPlanner{alert}"].items()
                            },
                        }
                    ],
                },
            ],
        }
        for name, labels, values, alert, quiet, loud, severity in cases
    ]
    (tmp_path / "tests.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "tests": tests}), encoding="utf-8")
    words = [PROMTOOL, "test", "rules", str(tmp_path / "tests.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--serve", "70000"], "'70000' is not [HOST:]PORT"),
        (["--serve", "1.2.3.4:9836"], "cannot serve at 1.2.3.4:9836"),
        (["--serve", "0", "--replay", "x"], "--serve and --replay cannot be combined"),
        (["--alert-command", "x", "--import", "y", "--record", "z"], "--alert-command and --import cannot be combined"),
        (["--certificate", "x"], "--certificate needs --serve PORT"),
        (["--key", "x"], "--key needs --certificate FILE"),
        (["--serve", "0", "--certificate", "/nowhere"], "/nowhere: "),
        (["--serve", "0", "--token-file", "/dev/null"], "/dev/null is empty"),
        (["--textfile", "x.txt"], "must end in .prom"),
        (["--textfile", "/nowhere/x.prom"], "/nowhere"),
        (["--alert-webhook", "http://example.com"], "a webhook is an address that starts with https://"),
        (["--alert-command", "'"], "is not a command"),
        (["--alert-temperature", "80"], "--alert-temperature needs --alert-command COMMAND"),
        (["--alert-webhook", "https://example.com", "--alert-lost", "no"], "'no' is neither on nor off"),
        (["--alert-command", "x", "--alert-memory", "101"], "too large. Type a percentage from 1 to 100, or off"),
        (["gpu-box"], "is not ssh://"),
        (["ssh://-oProxyCommand=x"], "is not ssh://"),
        (["ssh://gpu-box", "--doctor"], "ssh://gpu-box and --doctor cannot be combined"),
    ],
)
def test_wrong_options_are_told(near_nvml, capsys, words, message):
    near_nvml.say(card(0, A))
    assert cli.main(["monitor", *words]) == 2
    assert message in capsys.readouterr().err


def test_without_its_package_the_exposition_says_what_to_install(near_nvml, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "planner.monitor.exposition.server", raising=False)
    assert cli.main(["monitor", "--serve", "0"]) == 3
    printed = capsys.readouterr().err
    assert "the exposition for Prometheus needs the package prometheus-client" in printed
    assert "[metrics]" in printed


def test_a_machine_that_cannot_be_reached_is_an_error_with_advice(ssh_server, monkeypatch, capsys):
    monkeypatch.setenv("PATH", ssh_server.client()["PATH"])
    address = str(ssh_server.address("/no/such/gpu-planner"))
    assert cli.main(["monitor", address]) == 3
    assert "hint: Install it there as on this one" in capsys.readouterr().err
    assert cli.main(["monitor", address, "--once"]) == 3
    assert "GPU Planner was not found on the other machine" in capsys.readouterr().err
    # What has ended does not connect again.
    unreachable = ssh_server.address("/bin/false")._replace(port=1)
    assert cli.main(["monitor", str(unreachable), "--once"]) == 3
    hint = (
        f"hint: Check its name and the network; in a terminal, this must work: ssh -p 1 {unreachable.user}@127.0.0.1\n"
    )
    assert capsys.readouterr().err.endswith(hint)
