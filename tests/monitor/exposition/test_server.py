"""What was read last is exposed, what is unknown has no series, and serving is guarded."""

import errno
import shutil
import socket
import ssl
import subprocess
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from prometheus_client import generate_latest

from planner.errors import SpecError
from planner.monitor.diagnosis.verdict import OtherFinding, Verdict, VerdictKind
from planner.monitor.exposition.server import Exposition, ListenAddress, MetricsServer, write_textfile
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Sample, Xid

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


CARD = Device("GPU-a", 'NVIDIA "Test"', 0, "00000000:01:00.0", facts={"memory_total_bytes": Reading(24e9)})
PART = Device("MIG-b", "NVIDIA Test 1g", 1, mig_parent="GPU-a", mig_instance=(1, 0))
READINGS = {
    "utilization_fraction": Reading(0.5),
    "power_watts": Reading(0xFFFFFFFF, is_implausible=True),
    "sm_clock_mhz": missing(Cause.NOT_SUPPORTED),
    "clock_reasons": Reading(0x4),
}
PROCESS = CardProcess(7, "GPU-a", "compute", Reading(1e9))


class Predicted(NamedTuple):
    memory_bytes: int
    power_watts: float | None


def samples(exposition):
    """Return the lines of samples, less the age, which changes."""
    lines = generate_latest(exposition.registry).decode().splitlines()
    return [line for line in lines if not line.startswith(("#", "gpu_planner_build", "gpu_planner_scrape"))]


def having(lines, name):
    return [line.partition("{")[2] for line in lines if line.startswith(f"{name}{{")]


def test_before_the_first_reading_only_the_program_is_exposed():
    exposition = Exposition()
    assert samples(exposition) == []
    assert b"gpu_planner_build_info{version=" in generate_latest(exposition.registry)


def test_readings_states_and_errors_are_exposed():
    exposition = Exposition()
    exposition.note(Inventory("580", "13", "13.0", (CARD, PART)))
    readings = {"GPU-a": READINGS, "MIG-b": {"utilization_fraction": Reading(0.0)}}
    sample = Sample(1.0, 2.0, readings, {"cpu_fraction": Reading(0.25)}, (), (PROCESS,), (Xid("GPU-a", 79),) * 2)
    exposition.note(sample)
    found = samples(exposition)
    assert having(found, "gpu_planner_gpu_utilization_ratio") == [
        'gpu="0",uuid="GPU-a"} 0.5',
        'gpu="0:1",uuid="MIG-b"} 0.0',
    ]
    assert having(found, "gpu_planner_gpu_memory_total_bytes") == ['gpu="0",uuid="GPU-a"} 2.4e+10']
    assert having(found, "gpu_planner_gpu_power_watts") == having(found, "gpu_planner_gpu_sm_clock_hertz") == []
    reasons = having(found, "gpu_planner_gpu_clock_reason")
    assert 'gpu="0",reason="power-cap",uuid="GPU-a"} 1.0' in reasons
    assert 'gpu="0",reason="idle",uuid="GPU-a"} 0.0' in reasons
    assert having(found, "gpu_planner_gpu_xid_events_total") == ['gpu="0",uuid="GPU-a",xid="79"} 2.0']
    assert having(found, "gpu_planner_gpu_processes")[0] == 'gpu="0",uuid="GPU-a"} 1.0'
    assert "gpu_planner_host_cpu_ratio 0.25" in found
    assert 'name="NVIDIA \\"Test\\"",pci_bus_id="00000000:01:00.0",uuid="GPU-a"} 1.0' in "".join(found)
    assert b"gpu_planner_scrape_age_seconds" in generate_latest(exposition.registry)


def test_a_card_that_is_silent_or_lost_has_its_state_and_no_readings():
    exposition = Exposition()
    exposition.note(Inventory("580", devices=(CARD,)))
    exposition.note(Sample(1.0, 2.0, {"GPU-a": READINGS}, xids=(Xid("GPU-gone", 31),)))
    faults = (Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, "GPU-a"), Fault(FaultKind.WSL, 1.0))
    exposition.note(Inventory("580", devices=(CARD,), faults=faults))
    found = samples(exposition)
    assert 'gpu="0",state="silent",uuid="GPU-a"} 1.0' in having(found, "gpu_planner_gpu_state")
    assert 'gpu="0",state="ok",uuid="GPU-a"} 0.0' in having(found, "gpu_planner_gpu_state")
    assert having(found, "gpu_planner_gpu_utilization_ratio") == []
    assert having(found, "gpu_planner_fault") == [
        'fault="card-not-answering",gpu="0",severity="warning",uuid="GPU-a"} 1.0',
        'fault="wsl",gpu="",severity="note",uuid=""} 1.0',
    ]
    assert having(found, "gpu_planner_gpu_xid_events_total") == ['gpu="",uuid="GPU-gone",xid="31"} 1.0']
    exposition.note(Inventory("580", devices=(Device("GPU-a", "Test", 0, state="lost"),)))
    assert 'gpu="0",state="lost",uuid="GPU-a"} 1.0' in having(samples(exposition), "gpu_planner_gpu_state")


def test_verdicts_and_predictions_are_exposed():
    exposition = Exposition()
    exposition.note(Inventory("580", devices=(CARD, Device("GPU-b", "Test", 1))))
    also = (OtherFinding(VerdictKind.THERMAL, "warning", "hot"),)
    verdict = Verdict(VerdictKind.HEALTHY, "good", "well used", "All is well.", 0.0, 1.0, also=also)
    exposition.note_verdicts({"GPU-a": verdict})
    exposition.note_predictions({"GPU-a": Predicted(10, 300.0), "GPU-b": Predicted(20, None)})
    found = samples(exposition)
    assert having(found, "gpu_planner_diagnosis") == [
        'gpu="0",severity="good",uuid="GPU-a",verdict="healthy"} 1.0',
        'gpu="0",severity="warning",uuid="GPU-a",verdict="thermal-throttled"} 1.0',
    ]
    assert len(having(found, "gpu_planner_plan_memory_bytes")) == 2
    assert having(found, "gpu_planner_plan_power_watts") == ['gpu="0",uuid="GPU-a"} 300.0']
    exposition.note(Inventory("580", devices=(CARD,), faults=(Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, "GPU-a"),)))
    assert having(samples(exposition), "gpu_planner_diagnosis") == []
