"""Addresses, clocks and ends of connections to other machines, without any."""

import pytest

from planner.errors import SpecError
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample
from planner.monitor.readings.wire import ClockAnswer
from planner.monitor.supervisor.remote import RemoteAddress, RemoteClock, clock_offset_text, explain_ssh_exit


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://gpu-box", RemoteAddress("gpu-box")),
        ("ssh://me@gpu-box:2222", RemoteAddress("gpu-box", "me", 2222)),
        ("ssh://me@[fe80::1%eth0]:22", RemoteAddress("fe80::1%eth0", "me", 22)),
        ("ssh://box/opt/venv/bin/gpu-planner", RemoteAddress("box", program="/opt/venv/bin/gpu-planner")),
        ("ssh://box/~/venv/bin/gpu-planner", RemoteAddress("box", program="~/venv/bin/gpu-planner")),
    ],
)
def test_an_address_is_read_and_written(text, address):
    assert RemoteAddress.parse(text) == address
    assert str(address) == text


def test_a_slash_at_the_end_names_no_program():
    assert RemoteAddress.parse(" ssh://box/ ") == RemoteAddress("box")


@pytest.mark.parametrize(
    "text",
    [
        "box",
        "ssh://",
        "http://box",
        "ssh://box:0",
        "ssh://box:70000",
        "ssh://-oProxyCommand=evil",
        "ssh://-l@box",
        "ssh://box/bin/x;reboot",
        "ssh://box/%24(reboot)",
        "ssh://box a",
        "ssh://box/a b",
    ],
)
def test_what_is_no_address_or_could_be_an_option_or_a_command_is_refused(text):
    with pytest.raises(SpecError, match="is not ssh://"):
        RemoteAddress.parse(text)


def test_the_command_asks_nothing_and_names_what_was_given():
    command = RemoteAddress("box", "me", 2222).command
    assert command[0] == "ssh"
    assert "BatchMode=yes" in command
    assert command[-8:] == ("2222", "-l", "me", "--", "box", "gpu-planner", "monitor", "--wire")
    assert "-p" not in RemoteAddress("box").command


def test_times_of_another_machine_are_corrected_by_half_of_the_way():
    # Asked at 100, answered at 104, so read at 102, which was 1,002 by the wall clock here.
    clock = RemoteClock(ClockAnswer(100.0, 50.0, 4602.0), 104.0, 1004.0)
    assert (clock.offset_seconds, clock.error_seconds) == (3600.0, 2.0)
    host = HostProcess("python", "me", "python train.py", 4500.0, None, 1, is_own=True)
    processes = (CardProcess(1, "GPU-a", "compute", Reading(1), host=host), CardProcess(2, "GPU-a", "mps", Reading(1)))
    sample = clock.corrected(Sample(60.0, 4612.0, processes=processes))
    assert (sample.monotonic_seconds, sample.wall_seconds) == (112.0, 1012.0)
    assert (sample.processes[0].host.started_seconds, sample.processes[0].host.is_own) == (900.0, False)
    assert sample.processes[1] == processes[1]
    assert clock.corrected(Sample(60.0, 4612.0)).processes is None
    inventory = clock.corrected(Inventory(faults=(Fault(FaultKind.WSL, 4600.0),)))
    assert inventory.faults[0].since_seconds == 1000.0


@pytest.mark.parametrize(
    ("there", "here", "was_set"),
    [(4622.0, 1024.0, False), (4622.9, 1023.1, False), (1022.0, 1024.0, True), (4622.0, 4624.0, True)],
)
def test_a_clock_that_is_set_is_noticed_at_the_next_reading(there, here, was_set):
    clock = RemoteClock(ClockAnswer(100.0, 50.0, 4602.0), 104.0, 1004.0)
    # Twenty seconds later by both monotonic clocks.
    assert clock.was_set(Sample(70.0, there), 124.0, here) == was_set


def test_a_difference_of_clocks_is_said_in_words():
    texts = [clock_offset_text(seconds) for seconds in (2.4, -75, 3599.9, -90_000)]
    assert texts == ["2 s ahead", "1 min 15 s behind", "1 h 0 min ahead", "25 h 0 min behind"]


@pytest.mark.parametrize(
    ("code", "output", "has_greeted", "kind", "detail"),
    [
        (255, "Host key verification failed.", False, FaultKind.UNKNOWN_HOST_KEY, "Host key verification failed."),
        (255, "@ REMOTE HOST IDENTIFICATION HAS CHANGED! @\nx", False, FaultKind.CHANGED_HOST_KEY, "x"),
        (
            255,
            "@ REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending ED25519 key in /root/.ssh/known_hosts:3\nfailed.",
            False,
            FaultKind.CHANGED_HOST_KEY,
            "Offending ED25519 key in /root/.ssh/known_hosts:3",
        ),
        (
            255,
            "me@box: Permission denied (publickey).",
            False,
            FaultKind.REFUSED,
            "me@box: Permission denied (publickey).",
        ),
        (255, "ssh: connect to host box port 22: No route", False, FaultKind.UNREACHABLE, None),
        (255, "", True, FaultKind.UNREACHABLE, "the connection was lost"),
        (255, "Fatal Python error: Segmentation fault", True, FaultKind.SAMPLER_CRASHED, None),
        (127, "sh: gpu-planner: not found", False, FaultKind.NO_PROGRAM, "sh: gpu-planner: not found"),
        (2, "error: unrecognized arguments: --wire", False, FaultKind.OTHER_VERSION, "it cannot send its readings"),
        (0, "This account is not available.", False, FaultKind.NO_PROGRAM, "This account is not available."),
        (0, "", False, FaultKind.NO_PROGRAM, "what answered is not gpu-planner"),
        (139, "in nvmlInit", True, FaultKind.SAMPLER_CRASHED, "SIGSEGV in nvmlInit"),
        (1, "ValueError: no", True, FaultKind.SAMPLER_FAILED, "ValueError: no"),
        (75, "", True, None, ""),
        (127, "\x1b[2Jnot found\a", False, FaultKind.NO_PROGRAM, "[2Jnot found"),
    ],
)
def test_the_end_of_a_connection_is_explained(code, output, has_greeted, kind, detail):
    found = explain_ssh_exit(code, output, has_greeted=has_greeted)
    assert found == (kind, output if detail is None else detail)
