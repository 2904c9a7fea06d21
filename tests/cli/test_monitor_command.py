"""The command `monitor`: once, live, as JSON, and as a check-up, with and without a driver."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from itertools import takewhile
from time import monotonic

import pytest
from fake_nvml_kit import A, B, card

from planner.cli import main as cli
from planner.cli.monitor.terminal import Screen, lines_of
from planner.monitor.settings import SamplerSettings, Timeouts
from planner.present.format import THIN


def run_monitor(fake_nvml, *words, stop_after=0, told="", **options):
    """Run the command in a process of its own; with `stop_after`, end it by Ctrl+C after so many lines with `told`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "monitor", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=fake_nvml.environment,
        text=True,
        encoding="utf-8",
        **options,
    )
    lines = []
    while sum(told in line for line in lines) < stop_after and (line := process.stdout.readline()):
        lines.append(line)
    if stop_after:
        process.send_signal(signal.SIGINT)
    # Not by `communicate`, which would lose what `readline` has read ahead.
    with process:
        printed, errors = "".join(lines) + process.stdout.read(), process.stderr.read()
    return process.returncode, printed, errors


@pytest.fixture
def near(near_nvml, monkeypatch):
    """Let the command in this process start its sampler on the library."""
    return near_nvml


def test_once_shows_cards_processes_and_what_is_wrong(near, capsys):
    near.say(card(0, A) | {"0.process.compute": f"{os.getpid()}:{3 * 2**30}"}, card(1, B, name="\\xf8", utilization=0))
    assert cli.main(["monitor", "--once"]) == 0
    printed = capsys.readouterr().out
    assert "driver 580.65.06 · CUDA 13.0 · CPU " in printed
    row = next(line for line in printed.splitlines() if "NVIDIA Test 0" in line)
    assert row.split() == [
        "0",
        "NVIDIA",
        "Test",
        "0",
        "50",
        "1.00",
        "/",
        "24.0",
        "20",
        "200",
        "/",
        "450",
        "60",
        "2520",
        "30",
        "busy",
    ]
    assert "idle" in next(line for line in printed.splitlines() if "00000000:01:00.0" in line)
    assert f"{os.getpid()}" in printed
    assert "· GPU 1: the driver's name for the GPU is not valid text (\\xf8)" in printed


def test_details_name_what_a_card_reports_beside_its_line(near, capsys):
    near.say(card(0, A, **{"field__91": 1, "link__0__165": 1, "link__0__164": 25000, "field__3": 2}))
    assert cli.main(["monitor", "--once", "--details"]) == 0
    printed = capsys.readouterr().out.replace(THIN, " ")
    assert "NVLink 0: 25 GB/s each way, no errors" in printed
    assert "Memory errors: 2 corrected since the driver was loaded" in printed
    assert "Not reported by this driver: " in printed


def test_once_as_json_has_devices_host_and_state(near, capsys):
    near.say(card(0, A))
    assert cli.main(["monitor", "--once", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["devices", "host", "state"]
    assert found["devices"][0]["metrics"]["utilization_fraction"] == 0.5
    assert found["host"]["metrics"]["cpu_fraction"] is not None
    assert found["host"]["metrics"]["network_receive_bytes_per_s"] is not None


def test_without_a_driver_it_says_why_and_what_to_do(near, capsys):
    near.say(error__nvmlInitWithFlags=9)
    assert cli.main(["monitor", "--once"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: the NVIDIA driver is not loaded (nvmlInit returned 9)\nhint: Load the driver")


def test_without_a_driver_json_still_tells_the_machine_and_the_state(near, capsys):
    near.say(error__nvmlInitWithFlags=18)
    assert cli.main(["monitor", "--once", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["devices"] == []
    assert found["host"]["metrics"]["memory_used_bytes"] > 0
    assert found["state"]["faults"][0]["kind"] == "version-mismatch"
    assert found["state"]["faults"][0]["advice"].startswith("Reboot")


def test_the_live_view_ends_at_once_without_a_driver(near, capsys):
    near.say(error__nvmlInitWithFlags=9)
    assert cli.main(["monitor", "--json"]) == 3
    assert "error: the NVIDIA driver is not loaded" in capsys.readouterr().err


def test_the_check_up_without_a_driver_ends_with_a_failure_and_says_why(near, capsys):
    near.say(error__nvmlInitWithFlags=9)
    assert cli.main(["monitor", "--doctor"]) == 3
    printed = capsys.readouterr().out
    assert "✗ Driver: cannot be reached; see State below" in printed
    assert "✗ State: the NVIDIA driver is not loaded (nvmlInit returned 9)\n    Load the driver" in printed
    assert "✓ Host (CPU, RAM, disks, network): 9 of 9 readings available" in printed


def test_the_check_up_as_json(near, capsys):
    near.say(card(0, A))
    assert cli.main(["monitor", "--doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)
    assert [check["outcome"] for check in checks[:2]] == ["works", "works"]
    assert "NVIDIA Test 0" in checks[3]["subject"]


def test_the_live_view_prints_a_line_a_sample_and_ends_with_ctrl_c(fake_nvml):
    fake_nvml.say(card(0, A))
    code, printed, errors = run_monitor(fake_nvml, "--json", "--interval", "0.1", stop_after=3)
    assert (code, errors) == (0, "")
    times = [json.loads(line)["state"]["monotonic_seconds"] for line in printed.splitlines()]
    assert len(times) >= 3
    assert times == sorted(times)


def test_an_xid_stands_in_the_lines_and_on_the_page_soon_after_the_driver_told_it(fake_nvml):
    fake_nvml.say(card(0, A), events=("0 8 79",))
    _, printed, _ = run_monitor(fake_nvml, "--json", "--interval", "0.5", stop_after=3)
    seen = [json.loads(line)["devices"][0]["xids"] for line in printed.splitlines()]
    assert [xid["number"] for xid in seen[2]] == [79]
    _, printed, _ = run_monitor(fake_nvml, "--interval", "0.5", stop_after=1, told="Xid")
    assert "✗ GPU 0: the driver reported Xid 79 at " in printed


def test_a_driver_that_hangs_stands_in_a_line_of_its_own_between_samples(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "2x0 1"})
    _, printed, _ = run_monitor(fake_nvml, "--json", "--interval", "1", stop_after=3)
    states = [json.loads(line)["state"] for line in printed.splitlines()]
    place = next(place for place, state in enumerate(states) if state["faults"])
    assert states[place]["monotonic_seconds"] == states[place - 1]["monotonic_seconds"]
    (fault,) = states[place]["faults"]
    assert (fault["kind"], fault["detail"]) == ("not-answering", f"nvmlDeviceGetPowerUsage of {A}")


# What the driver does, and how a line of JSON and the page say it.
_EVENTS = {
    "xid": ({}, ("0 8 79",), '"number":79', "Xid 79"),
    "loss": ({"0.error.*": 15}, (), '"state":"lost"', "GPU 0 no longer responds"),
    "hang": ({"0.hang.nvmlDeviceGetPowerUsage": 1}, (), "not-answering", "driver does not respond"),
}
_MOST_SAMPLES_BEFORE = 2


@contextmanager
def running_monitor(fake_nvml, *words):
    """Run the command at its own interval until the first reading is printed; yield its output line by line."""
    fake_nvml.say(card(0, A), card(1, B))
    with subprocess.Popen(
        [sys.executable, "-m", "planner", "monitor", *words],
        stdout=subprocess.PIPE,
        env=fake_nvml.environment,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            next(line for line in process.stdout if "NVIDIA Test 1" in line)
            yield process.stdout
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()


@pytest.mark.parametrize("event", ["xid", "loss"])
def test_an_event_stands_in_one_of_the_first_lines_after_it(fake_nvml, event):
    changes, events, told, _ = _EVENTS[event]
    with running_monitor(fake_nvml, "--json") as lines:
        fake_nvml.say(card(0, A) | changes, card(1, B), events=events)
        happened = monotonic()
        earlier = list(takewhile(lambda line: told not in line, lines))
    # The clock is that of the sampler: lines that were read before and printed late do not count.
    assert sum(json.loads(line)["state"]["monotonic_seconds"] > happened for line in earlier) <= _MOST_SAMPLES_BEFORE


@pytest.mark.parametrize("event", _EVENTS)
def test_an_event_stands_on_the_page_soon(fake_nvml, event):
    changes, events, _, told = _EVENTS[event]
    with running_monitor(fake_nvml) as lines:
        fake_nvml.say(card(0, A) | changes, card(1, B), events=events)
        assert any(told in line for line in lines)


def test_a_call_that_hangs_at_the_ordinary_interval_is_told_within_two_seconds():
    # A hang has no sample whose time could be compared: its line comes when this time is over.
    settings, timeouts = SamplerSettings(), Timeouts()
    assert settings.fast_seconds + settings.hang_seconds < settings.fast_seconds + timeouts.quiet < 2.0


def test_lines_go_on_with_the_other_card_and_the_machine_while_a_card_hangs(fake_nvml):
    with running_monitor(fake_nvml, "--json", "--interval", "0.5") as lines:
        fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": 1}, card(1, B))
        told = json.loads(next(line for line in lines if "card-not-answering" in line))
        later = [json.loads(next(lines)) for _ in range(4)]
    (fault,) = told["state"]["faults"]
    assert (fault["kind"], fault["uuid"], fault["detail"]) == ("card-not-answering", A, "nvmlDeviceGetPowerUsage")
    times = [told["state"]["monotonic_seconds"], *(line["state"]["monotonic_seconds"] for line in later)]
    assert times == sorted(set(times))
    for line in later:
        silent, other = line["devices"]
        assert set(silent["metrics"].values()) == {None}
        assert set(silent["missing"].values()) == {"no-answer"}
        assert silent["diagnosis"]["title"] == "no answer"
        assert other["metrics"]["utilization_fraction"] == 0.5
        assert line["host"]["metrics"]["memory_used_bytes"] > 0


def test_a_card_that_is_lost_stands_in_the_lines(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetPowerUsage": "2x0 15"}, card(1, B))
    _, printed, _ = run_monitor(fake_nvml, "--json", "--interval", "0.5", stop_after=6)
    last = json.loads(printed.splitlines()[-1])
    assert [device["state"] for device in last["devices"]] == ["lost", "running"]
    assert last["devices"][0]["diagnosis"]["kind"] == "lost"
    assert [fault["kind"] for fault in last["state"]["faults"]] == ["lost"]


def test_the_live_table_goes_on_where_there_is_no_terminal(fake_nvml):
    fake_nvml.say(card(0, A))
    code, printed, errors = run_monitor(fake_nvml, "--interval", "0.1", stop_after=2, told="driver 580.65.06")
    assert (code, errors) == (0, "")
    assert printed.count("driver 580.65.06") >= 2
    assert "\x1b" not in printed


@pytest.mark.parametrize("interval", ["0", "11", "x", "nan"])
def test_an_interval_that_cannot_be_kept_is_refused(interval, capsys):
    assert cli.main(["monitor", "--interval", interval]) == 2
    assert "Type a number from 0.1 to 10" in capsys.readouterr().err


def in_a_terminal(command, environment, columns, told):
    """Run a command in a terminal until its third page or a later one has `told`; return exit code and pages."""
    import fcntl
    import pty
    import struct
    import termios

    # What another program said of its own terminal goes before what the terminal says.
    environment = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, is_ended = b"", False
    with suppress(OSError):  # how a terminal tells that its other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
            if not is_ended and any(told in page for page in shown.split(CLEAR)[2:-1]):
                process.send_signal(signal.SIGINT)
                is_ended = True
    os.close(ours)
    return process.wait(60), [page.decode().replace("\r", "") for page in shown.split(CLEAR)]


CLEAR = b"\x1b[J"
SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("columns", "titles"), [(80, "Use Memory Power State"), (160, "Use Memory SM clock Fan State")]
)
def test_the_live_table_fits_the_terminal(fake_nvml, columns, titles):
    fake_nvml.say(card(0, A, name="NVIDIA GeForce RTX 4090", reasons=0x20))
    command = [sys.executable, "-m", "planner", "monitor", "--interval", "0.1"]
    code, pages = in_a_terminal(
        command, fake_nvml.environment, columns, b"Slowed because of heat: the fans run slowly."
    )
    assert code == 0
    assert pages[0].startswith("\x1b[?25l")
    assert pages[1].startswith("\x1b["), "it goes back up to the first line"
    assert pages[-1].endswith("\x1b[?25h")
    # A busy machine may be shown as one whose readings are late on the pages after it.
    lines = SEQUENCES.sub("", next(page for page in pages if "Slowed because of heat" in page)).splitlines()
    assert max(map(len, lines)) <= columns
    assert all(title in "\n".join(lines) for title in titles.split())
    assert any("slowed by heat" in line for line in lines), "the state is shown however narrow it is"
    assert ("Fan" in "".join(lines)) is (columns == 160)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_page_is_drawn_over_the_last_one(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((8, 4)))
    terminal = _Terminal()
    with Screen(terminal) as screen:
        screen.show(lines_of("one\ntwo"))
        screen.show(lines_of("a line that is too long\n2\n3"))
    drawn = terminal.getvalue()
    assert drawn == ("\x1b[?25lone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[2Fa line t\x1b[K\n2\x1b[K\n3\x1b[K\n\x1b[J\x1b[?25h")


def shown_lines(terminal):
    """Return the lines of the last page."""
    page = terminal.getvalue().removesuffix("\x1b[J").rpartition("\x1b[J")[2]
    return SEQUENCES.sub("", page).splitlines()


def test_a_page_longer_than_the_terminal_is_scrolled_by_keys(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 5)))
    terminal = _Terminal()
    screen = Screen(terminal)
    screen.show(lines_of("\n".join("abcdefgh")))
    tops = []
    for key in ("down", "page-down", "end", "down", "up", "page-up", "home", "up"):
        screen.scroll(key)
        tops.append(shown_lines(terminal)[0])
    assert tops == ["b", "e", "f", "f", "e", "b", "a", "a"]
    assert shown_lines(terminal)[:3] == ["a", "b", "c"]
    assert shown_lines(terminal)[3].startswith("lines 1 to 3 of 8")
    screen.scroll("end")
    screen.show(lines_of("short"))
    assert shown_lines(terminal) == ["short"]


def test_colors_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    page = [*lines_of("hot", "warn"), *lines_of("use ███▏ 31")]

    def drawn(stream):
        Screen(stream).show(page)
        return stream.getvalue()

    colored = drawn(_Terminal())
    assert "\x1b[33mhot\x1b[0m" in colored
    assert "use \x1b[36m███▏\x1b[0m 31" in colored
    assert drawn(io.StringIO()) == "hot\nuse ███▏ 31\n\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in drawn(_Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[33m" not in drawn(_Terminal())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_keys_of_a_terminal_scroll_and_q_ends_the_view(fake_nvml):
    import pty

    fake_nvml.say(*(card(number, f"GPU-{number:08d}-0000-0000-0000-000000000000") for number in range(8)))
    ours, theirs = pty.openpty()
    environment = fake_nvml.environment | {"LINES": "6", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", IN_OWN_SESSION], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown, keys = b"", [(b"lines 1 to 4", b"\x1b[6~"), (b"lines 5 to 8", b"\x1b[A"), (b"lines 4 to 7", b"q")]
    with suppress(OSError):  # how a terminal tells that its other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
            if keys and keys[0][0] in shown:
                os.write(ours, keys.pop(0)[1])
    os.close(ours)
    assert process.wait(60) == 0
    assert keys == []


# The terminal must be the one that controls the program, as if it was started from a shell.
IN_OWN_SESSION = """
import fcntl, os, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from planner.cli import main
raise SystemExit(main.main(["monitor", "--interval", "0.2"]))
"""


def test_what_shows_at_once_is_said_of_a_card_with_what_helps(near, capsys):
    near.say(card(0, A, **{"memory.used": 24 * 2**30 - 2**29}), card(1, B))
    assert cli.main(["monitor", "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("! GPU 0: Nearly out of memory."))
    assert lines[place + 1].startswith("    Use activation checkpointing")
    assert not any("GPU 1:" in line for line in lines)


def test_json_tells_the_diagnosis_of_each_card(near, capsys):
    near.say(card(0, A, reasons=0x40))
    assert cli.main(["monitor", "--once", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["devices"][0]["diagnosis"]
    assert (found["kind"], found["evidence"][0]["metric"]) == ("thermal-throttled", "slowed_by_heat")


def test_names_of_processes_cannot_control_the_terminal():
    stream = io.StringIO()
    with Screen(stream) as screen:
        screen.show(lines_of("python \x1b]0;title\x07 \x9b2J 3\u2009GiB"))
    assert stream.getvalue() == "python \ufffd]0;title\ufffd \ufffd2J 3\u2009GiB\n\n"
