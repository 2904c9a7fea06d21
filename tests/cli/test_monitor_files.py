"""The command `monitor` on files: recorded, replayed, summed up, exported, converted, and refused."""

import csv
import json
import signal
import subprocess
import sys

import pytest
from event_reader import events
from fake_nvml_kit import A, card
from recording_kit import CARDS, sample, written

from planner.cli import main as cli
from planner.monitor.recording.recording import read_recording
from planner.monitor.recording.records import RecordedMark
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan

LOG = """\
timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu
2026/01/03 15:36:53.500, 0, NVIDIA X, 90 %, 1024 MiB, 100.00 W, 50
2026/01/03 15:36:54.500, 0, NVIDIA X, 100 %, 2048 MiB, 200.00 W, 52
2026/01/03 15:36:55.500, 0, NVIDIA X, 95 %, 2048 MiB, 200.00 W, 54
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "smi.csv"
    path.write_text(LOG)
    return str(path)


@pytest.fixture
def run(tmp_path):
    """Return a recording of a minute and ten seconds that was cut off."""
    path = tmp_path / "run.gpurec"
    counted = (
        sample(float(at), a={"energy_joules": 3600.0 * at, "clock_reasons": 4, "utilization_fraction": 1.0})
        for at in range(71)
    )
    path.write_bytes(written([CARDS, *counted, RecordedMark(1.0, 2.0, "x")], is_ended=False))
    return str(path)


def test_a_live_run_is_recorded(fake_nvml, tmp_path, capsys):
    fake_nvml.say(card(0, A))
    path = tmp_path / "run.gpurec"
    command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", "0.1", "--record", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=fake_nvml.environment) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    found = read_recording(path)
    assert (found.loss.is_cut, found.samples >= 3) == (False, True)
    assert cli.main(["monitor", "--replay", str(path), "--json"]) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["devices"][0]["metrics"] for one in again[:3]] == [one["devices"][0]["metrics"] for one in lines]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_is_full_ends_the_run_and_says_so(fake_nvml, tmp_path):
    import resource

    fake_nvml.say(card(0, A))
    path = tmp_path / "run.gpurec"
    command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", "0.1", "--record", str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        env=fake_nvml.environment,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert done.returncode == 2
    assert b"run.gpurec: File too large" in done.stderr
    assert read_recording(path).loss.is_cut


def test_a_file_that_is_there_is_not_written_over(run, capsys):
    assert cli.main(["monitor", "--record", run]) == 2
    assert "the file already exists" in capsys.readouterr().err


def test_a_log_is_replayed_at_its_pace(log, capsys):
    assert cli.main(["monitor", "--replay", log, "--speed", "20", "--from", "0:01"]) == 0
    printed = capsys.readouterr().out
    assert "15:36:53" not in printed
    assert printed.index("15:36:54 · driver not reported") < printed.index("15:36:55")
    assert "NVIDIA X" in printed


def test_a_replay_says_what_is_lost(run, capsys):
    assert cli.main(["monitor", "--replay", run, "--json", "--from", "69.5"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "The recording is truncated; its last second may be missing.\n"
    assert [json.loads(line)["state"]["monotonic_seconds"] for line in printed.out.splitlines()] == [69.0, 70.0]


def test_a_summary_in_words(run, log, capsys):
    assert cli.main(["monitor", "--summary", run, "--tariff", "0.5"]) == 0
    printed = capsys.readouterr().out.replace("\u2009", " ")
    assert "run.gpurec: 1 min 10 s from 14 November 2023" in printed
    assert ", 71 samples, 1 mark\n70 Wh used by the GPUs, $0.035 at $0.50 per kWh\nDiagnosed: " in printed
    assert "\nThe recording is truncated" in printed
    assert "NVIDIA Test 0" in printed
    assert "power limit 1 min 10 s" in printed
    assert cli.main(["monitor", "--summary", log]) == 0
    printed = capsys.readouterr().out.replace("\u2009", " ")
    assert (
        "≈ 0.0972 Wh used by the GPUs (≈: integrated from power readings where a GPU has no energy counter)" in printed
    )


def test_a_summary_as_json(log, capsys):
    assert cli.main(["monitor", "--summary", log, "--tariff", "0.36", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["energy_joules"], found["is_energy_estimated"]) == (350.0, True)
    assert found["usd"] == pytest.approx(350 / 3.6e6 * 0.36)
    assert found["devices"][0]["metrics"]["power_watts"] == {"mean": 175.0, "peak": 200.0}


def test_export_and_import(log, tmp_path, capsys):
    out, kept = tmp_path / "out.csv", tmp_path / "kept.gpurec"
    assert cli.main(["monitor", "--replay", log, "--export", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 3 rows\n"
    with out.open() as stream:
        assert [row["power_watts"] for row in csv.DictReader(stream)] == ["100", "200", "200"]
    assert cli.main(["monitor", "--import", log, "--record", str(kept)]) == 0
    assert capsys.readouterr().out.startswith(f"{kept}: 2")
    assert read_recording(kept).samples == 3
    assert cli.main(["monitor", "--import", log, "--record", str(kept)]) == 2
    assert "kept.gpurec: the file already exists" in capsys.readouterr().err
    assert cli.main(["monitor", "--import", str(kept), "--record", str(tmp_path / "other.gpurec")]) == 2
    assert "kept.gpurec: is a recording already" in capsys.readouterr().err


def test_export_and_import_as_json(log, tmp_path, capsys):
    out, kept = tmp_path / "out.csv", tmp_path / "kept.gpurec"
    assert cli.main(["monitor", "--replay", log, "--export", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "rows": 3}
    assert cli.main(["monitor", "--import", log, "--record", str(kept), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(kept), "samples": 3, "notes": []}


def test_an_export_writes_over_nothing(log, tmp_path, capsys):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    assert cli.main(["monitor", "--replay", log, "--export", str(out)]) == 2
    assert "out.csv: the file already exists" in capsys.readouterr().err
    assert out.read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_an_import_that_does_not_fit_the_disk_leaves_nothing_behind(log, tmp_path, capsys):
    import resource

    kept, limits = tmp_path / "kept.gpurec", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        assert cli.main(["monitor", "--import", log, "--record", str(kept)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "kept.gpurec: cannot be written (File too large)" in capsys.readouterr().err
    assert not kept.exists()


def test_without_a_card_nothing_is_recorded_and_nothing_left(near_nvml, tmp_path, capsys):
    near_nvml.say(error__nvmlInitWithFlags=9)
    path = tmp_path / "run.gpurec"
    assert cli.main(["monitor", "--record", str(path)]) == 3
    assert "the NVIDIA driver is not loaded" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking")
@pytest.mark.parametrize("end", ["SIGTERM", "SIGHUP"])
def test_a_run_that_is_ended_from_outside_ends_its_recording_properly(fake_nvml, tmp_path, end):
    fake_nvml.say(card(0, A))
    path = tmp_path / "run.gpurec"
    command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", "0.1", "--record", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=fake_nvml.environment) as process:
        process.stdout.readline()
        process.send_signal(getattr(signal, end))
        assert process.wait(60) == 128 + getattr(signal, end)
    assert not read_recording(path).loss.is_cut


def test_how_a_log_was_read_is_told(tmp_path, capsys):
    log = tmp_path / "dmon.txt"
    log.write_text("# gpu pwr sm\n# Idx W %\n0 100 50\n")
    assert cli.main(["monitor", "--import", str(log), "--record", str(tmp_path / "kept.gpurec")]) == 0
    assert "The log has no times" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--speed", "2"], "--speed needs --replay FILE"),
        (["--from", "2"], "--from needs --replay FILE"),
        (["--export", "a.csv"], "--export needs --replay FILE"),
        (["--tariff", "1"], "--tariff needs --summary FILE"),
        (["--import", "a.csv"], "--import needs --record FILE"),
        (["--replay", "a", "--summary", "b"], "--replay and --summary cannot be combined"),
        (["--once", "--record", "b"], "--record and --once cannot be combined"),
        (["--replay", "a", "--record", "b"], "--record and --replay cannot be combined"),
        (["--replay", "a", "--speed", "0"], "'0' is too small. Type a number from 0.01 to 1,000."),
        (["--replay", "a", "--speed", "fast"], "'fast' is not a number"),
        (["--replay", "a", "--from", "1:2:3:4"], "'1:2:3:4' is not a time such as 90, 1:30 or 2:01:30"),
        (["--summary", "a", "--tariff", "nan"], "'nan' is not a price in US dollars"),
        (["--replay", "a", "--interval", "2"], "--interval and --replay cannot be combined"),
        (["--once", "--interval", "2"], "--interval and --once cannot be combined"),
        (["--replay", "a", "--export", "b.csv", "--from", "2"], "--export writes the whole recording"),
        (["--replay", "missing.gpurec"], "missing.gpurec: cannot be read"),
    ],
)
def test_what_does_not_go_together_is_refused(words, said, capsys):
    assert cli.main(["monitor", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_recording_is_exported_to_a_tracker(run, tmp_path, capsys):
    assert cli.main(["monitor", "--replay", run, "--export", str(tmp_path / "runs"), "--as", "tensorboard"]) == 0
    out = capsys.readouterr().out
    assert f"{tmp_path / 'runs' / 'run'}: 142 values" in out
    assert f"To see it: tensorboard --logdir {tmp_path / 'runs'}" in out
    assert cli.main(["monitor", "--replay", run, "--export", str(tmp_path / "runs"), "--as", "tensorboard"]) == 2
    assert "the file already exists" in capsys.readouterr().err
    again = str(tmp_path / "again")
    assert cli.main(["monitor", "--replay", run, "--export", again, "--as", "tensorboard", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == 142
    (path,) = (tmp_path / "again" / "run").iterdir()
    assert len(events(path.read_bytes())) == 75


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--replay", "{run}", "--as", "tensorboard"], "--as needs --export FOLDER"),
        (["--export", "runs", "--as", "tensorboard"], "--export needs --replay FILE"),
        (["--record", "x.gpurec", "--export", "x.csv"], "--export needs --replay FILE"),
        (
            ["--replay", "{run}", "--plan", "plan.json"],
            "--plan needs --record FILE, --serve, --textfile, or --export FOLDER --as TRACKER",
        ),
        (["--import", "{run}", "--record", "y", "--export", "z", "--as", "mlflow"], "cannot be combined"),
        (["--replay", "{run}", "--export", "runs", "--as", "comet"], "invalid choice: 'comet'"),
        (["--replay", "{run}", "--export", "{run}", "--as", "tensorboard"], "is not a folder"),
        (["--replay", "{run}", "--export", "runs", "--as", "tensorboard", "--plan", "{run}"], "not a text file"),
    ],
)
def test_wrong_options_of_trackers_are_told(run, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["monitor", *(word.format(run=run) for word in words)]) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"run.gpurec"}


def test_a_live_run_that_is_killed_leaves_a_readable_event_file(fake_nvml, tmp_path):
    fake_nvml.say(card(0, A))
    save_plan(tmp_path / "plan.json", Plan(model=ModelChoice(id="Qwen/Qwen2.5-0.5B"), gpu="rtx-4090"))
    words = ["--record", "run.gpurec", "--export", "runs", "--as", "tensorboard", "--plan", "plan.json"]
    command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", "0.1", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=fake_nvml.environment, cwd=tmp_path) as process:
        found = []
        while not any(tag.startswith("gpu/0/") for *_, values in found for tag in values):
            assert process.stdout.readline(), "the command ended by itself"
            found = [event for path in (tmp_path / "runs").rglob("*tfevents*") for event in events(path.read_bytes())]
        process.kill()
    (path,) = (tmp_path / "runs" / "run").iterdir()
    tags = {tag for *_, values in events(path.read_bytes()) for tag in values}
    assert {"recording", "plan", "gpu/0/power_W", "gpu/0/power_W/max"} <= tags
    kept = read_recording(tmp_path / "run.gpurec")
    assert (kept.loss.is_cut, kept.plan["gpu"]) == (True, "rtx-4090")


def test_a_live_run_that_ends_says_where_its_tracker_is(fake_nvml, tmp_path):
    fake_nvml.say(card(0, A))
    command = [sys.executable, "-m", "planner", "monitor", "--interval", "0.1", "--record", "run.gpurec"]
    command += ["--export", "runs", "--as", "tensorboard"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=fake_nvml.environment, cwd=tmp_path, **pipes) as process:
        for _ in range(3):
            assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 0
    assert "To see it: tensorboard --logdir runs" in told


def test_a_tracker_that_cannot_be_written_ends_before_the_recording_begins(fake_nvml, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("")
    assert cli.main(["monitor", "--record", "x.gpurec", "--export", "runs", "--as", "tensorboard"]) == 2
    assert "runs: is not a folder" in capsys.readouterr().err
    assert not (tmp_path / "x.gpurec").exists()
