"""Another machine over SSH: a real server and client, with the sampler of this checkout at the far end."""

from queue import Queue
from time import monotonic, time

import psutil
from fake_nvml_kit import CALM, FAST, HURRIED, A, B, card, keys_of, states_of

from planner.monitor.readings.faults import LINK_FAULTS, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import Hello
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.recorder import Recorder
from planner.monitor.supervisor.sampler_process import SamplerProcess
from planner.monitor.supervisor.snapshot import take_snapshot
from planner.monitor.supervisor.supervisor import Supervisor


def supervise(fake_nvml, server, program, timeouts=CALM, settings=FAST, client=None, listener=None):
    """Return a supervisor of the machine at the server, which `fake_nvml` hears."""

    def hear(update):
        if listener is not None:
            listener(update)
        fake_nvml._queue.put(update)

    return Supervisor(hear, settings, timeouts, client or server.client(), server.address(program))


def test_a_machine_is_read_cut_off_and_read_again_and_nothing_is_lost_from_its_recording(
    ssh_server, fake_nvml, tmp_path
):
    fake_nvml.say(card(0, A), card(1, B))
    program = ssh_server.program("recorded", fake_nvml.environment)
    path = tmp_path / "remote.gpurec"
    with Recorder(path) as recorder, supervise(fake_nvml, ssh_server, program, listener=recorder.note):
        latest = fake_nvml.wait_for(lambda latest: latest.reading(B, "utilization_fraction").value == 0.5)
        assert latest.inventory.machine
        assert latest.inventory.faults == ()
        assert abs(latest.wall_seconds - time()) < 30
        for connection in ssh_server.connections():
            connection.kill()
        fault = fake_nvml.wait_for_fault(FaultKind.UNREACHABLE)
        assert fake_nvml.latest.reading(A, "utilization_fraction").cause == "no-answer"
        assert fault.description.severity == "error"
        fake_nvml.wait_until_over(FaultKind.UNREACHABLE)
        fake_nvml.wait_for(lambda latest: latest.reading(A, "utilization_fraction").value == 0.5)
    times = [update.monotonic_seconds for update in fake_nvml.updates if isinstance(update, Sample)]
    assert times == sorted(times)
    recording = open_recording(path)
    heard = sum(isinstance(update, Sample) for update in fake_nvml.updates)
    assert recording.samples == heard + sum(isinstance(update, Sample) for update in fake_nvml._queue.queue)
    machines = {update.machine for update in recording if isinstance(update, Inventory)}
    assert fake_nvml.latest.inventory.machine in machines
    _, still_served = psutil.wait_procs(ssh_server.connections(), timeout=30)
    assert still_served == []


def test_an_xid_a_hang_and_the_loss_of_a_card_arrive_within_two_readings(ssh_server, fake_nvml):
    fake_nvml.say(card(0, A), card(1, B))
    program = ssh_server.program("faulty", fake_nvml.environment)
    with supervise(fake_nvml, ssh_server, program, settings=FAST._replace(fast_seconds=0.5, hang_seconds=0.3)):
        fake_nvml.wait_for(lambda latest: latest.reading(B, "utilization_fraction").value == 0.5)
        fake_nvml.say(card(0, A), card(1, B), events=("1 8 31",))
        assert readings_until(fake_nvml, lambda latest: [xid.number for xid in latest.xids] == [31]) <= 2
        fake_nvml.say(card(0, A), card(1, B) | {"1.stall.nvmlDeviceGetPowerUsage": 1})
        assert readings_until(fake_nvml, lambda latest: (FaultKind.CARD_NOT_ANSWERING, B) in keys_of(latest)) <= 2
        fake_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetPowerUsage": 15}, card(1, B))
        assert readings_until(fake_nvml, lambda latest: states_of(latest)[A] == "lost") <= 2


def test_a_stalled_connection_is_named_and_goes_on_when_it_is_over(ssh_server, fake_nvml):
    fake_nvml.say(card(0, A))
    program = ssh_server.program("stalled", fake_nvml.environment)
    with supervise(fake_nvml, ssh_server, program, timeouts=HURRIED._replace(quiet=0.3, quiet_start=20.0, kill=60.0)):
        fake_nvml.wait_for(lambda latest: latest.reading(A, "utilization_fraction").value == 0.5)
        stalled = [one for connection in ssh_server.connections() for one in (connection, *connection.children())]
        for process in stalled:
            process.suspend()
        fake_nvml.wait_for_fault(FaultKind.REMOTE_SILENT)
        assert fake_nvml.latest.reading(A, "utilization_fraction").value is None
        for process in stalled:
            process.resume()
        fake_nvml.wait_until_over(FaultKind.REMOTE_SILENT)
        fake_nvml.wait_for(lambda latest: latest.reading(A, "utilization_fraction").value == 0.5)

    with supervise(
        fake_nvml, ssh_server, ssh_server.script("mute", "exec sleep 60"), timeouts=HURRIED._replace(start=0.5)
    ):
        fake_nvml.wait_for_fault(FaultKind.UNREACHABLE, detail="it stopped responding")


def test_a_machine_whose_clock_shows_no_time_is_not_believed(ssh_server):
    hello, clock = '{"hello":{"wire":1,"program":"","machine":"a"}}', '{"clock":[0,0,1e999]}'
    address = ssh_server.address(ssh_server.script("timeless", f"echo '{hello}'; echo '{clock}'"))
    heard = Queue()
    process = SamplerProcess(
        FAST, lambda _, message: heard.put(message), lambda _: heard.put("end"), ssh_server.client(), address
    )
    assert [heard.get(timeout=30), heard.get(timeout=30)] == [Hello(1, "", "a"), "end"]
    assert process.clock is None
    assert process.kill(5.0)


def test_a_clock_that_is_an_hour_ahead_is_corrected_and_said_until_it_is_set(ssh_server, fake_nvml, tmp_path):
    fake_nvml.say(card(0, A))
    (ahead := tmp_path / "ahead").touch()
    program = ssh_server.program("ahead", fake_nvml.environment, ahead)
    with supervise(fake_nvml, ssh_server, program) as supervisor:
        fault = fake_nvml.wait_for_fault(FaultKind.CLOCK_OFF)
        assert fault.detail in ("1 h 0 min ahead", "59 min 59 s ahead")
        sample = fake_nvml.wait_for_sample()
        assert abs(sample.wall_seconds - time()) < 30
        assert abs(sample.monotonic_seconds - monotonic()) < 30
        ahead.unlink()
        fake_nvml.wait_until_over(FaultKind.CLOCK_OFF)
        assert abs(fake_nvml.wait_for_sample().wall_seconds - time()) < 30
        supervisor.release()
        fake_nvml.wait_for_fault(FaultKind.RELEASED)
        supervisor.resume()
        fake_nvml.wait_until_over(FaultKind.RELEASED)


def test_each_obstacle_is_named_and_a_snapshot_does_not_wait_for_it(ssh_server, monkeypatch):
    hello = '{"hello":{"wire":99,"program":"gpu-planner 9.0","machine":"later"}}'
    programs = {
        FaultKind.NO_PROGRAM: "/no/such/gpu-planner",
        FaultKind.OTHER_VERSION: ssh_server.script("later", f"echo '{hello}'; exec cat"),
    }
    clients = {
        FaultKind.REFUSED: ssh_server.client("refused", key="stranger"),
        FaultKind.UNKNOWN_HOST_KEY: ssh_server.client("unknown", known=None),
        FaultKind.CHANGED_HOST_KEY: ssh_server.client("changed", known="stranger"),
        FaultKind.NO_SSH: {"PATH": "/nowhere"},
    }
    for kind in (*programs, *clients, FaultKind.UNREACHABLE):
        address = ssh_server.address(programs.get(kind, "/bin/false"))
        if kind is FaultKind.UNREACHABLE:
            address = address._replace(port=1)
        monkeypatch.setenv("PATH", clients.get(kind, ssh_server.client())["PATH"])
        (fault,) = take_snapshot(address=address).inventory.faults
        assert fault.kind is kind
        assert fault.detail
        assert kind in LINK_FAULTS


def readings_until(fake_nvml, holds):
    """Return how many readings came until `holds`."""
    before = len(fake_nvml.updates)
    fake_nvml.wait_for(holds)
    return sum(isinstance(update, Sample) for update in fake_nvml.updates[before:])
