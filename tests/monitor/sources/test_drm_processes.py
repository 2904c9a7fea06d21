"""Processes on the cards of Linux' DRM."""

import os
import shutil

import pytest
from cards_kit import (
    ARC,
    BATTLEMAGE,
    GIB,
    RADEON,
    arc,
    battlemage,
    compute_on,
    open_card,
    radeon,
    write_cards,
    write_files,
)

from planner.monitor.host.processes import HostProcesses
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.sources.drm import DrmSource


@pytest.fixture
def source(tmp_path):
    return DrmSource(tmp_path, HostProcesses(), sees_same_pids=True)


def _client(pdev, **values):
    return {"drm-pdev": pdev, **{name.replace("_", "-"): value for name, value in values.items()}}


def _processes(source, now):
    listed = source.processes(source.find(now), now)
    return {(each.uuid, each.pid): each for each in listed}


def test_processes_by_what_they_have_opened(source, tmp_path):
    write_cards(tmp_path, radeon(), arc(), battlemage())
    own = os.getpid()
    gfx = {"drm-engine-gfx": "1000000000 ns", "drm-engine-enc": "0 ns", "drm-memory-vram": "2048 KiB"}
    render = {"drm-engine-render": "0 ns", "drm-engine-capacity-video": "2", "drm-resident-local0": "5 MiB"}
    cycles = {"drm-cycles-ccs": "100", "drm-total-cycles-ccs": "1000", "drm-total-vram0": "1 GiB"}
    open_card(tmp_path, own, _client("0000:03:00.0") | gfx, _client("0000:0a:00.0") | render)
    # A process that knows one use by two names, and one whose card is none of these.
    open_card(tmp_path, 4242, *[_client("0000:0b:00.0") | cycles | {"drm-client-id": "7"}] * 2)
    open_card(tmp_path, 4343, _client("0000:99:00.0") | gfx)
    open_card(tmp_path, 4444)
    first = _processes(source, 1.0)
    assert set(first) == {(RADEON, own), (ARC, own), (BATTLEMAGE, 4242)}
    assert first[RADEON, own].sm_fraction == missing(Cause.NOT_YET)
    assert first[RADEON, own].host.is_own
    assert first[BATTLEMAGE, 4242].host is None
    gfx |= {"drm-engine-gfx": "1500000000 ns", "drm-engine-enc": "250000000 ns"}
    open_card(tmp_path, own, _client("0000:03:00.0") | gfx, _client("0000:0a:00.0") | render)
    cycles |= {"drm-cycles-ccs": "400", "drm-total-cycles-ccs": "2000"}
    open_card(tmp_path, 4242, *[_client("0000:0b:00.0") | cycles | {"drm-client-id": "7"}] * 2)
    found = _processes(source, 2.0)
    radeon_process = found[RADEON, own]
    assert (radeon_process.kind, radeon_process.memory_bytes.value) == ("graphics", 2 * 2**20)
    assert (radeon_process.sm_fraction.value, radeon_process.encoder_fraction.value) == (0.5, 0.25)
    assert radeon_process.decoder_fraction == missing(Cause.NOT_SUPPORTED)
    assert found[ARC, own].memory_bytes.value == 5 * 2**20
    xe_process = found[BATTLEMAGE, 4242]
    assert (xe_process.kind, xe_process.memory_bytes.value, xe_process.sm_fraction.value) == ("compute", GIB, 0.3)


def test_the_memory_of_rocms_processes_comes_from_its_own_driver(source, tmp_path):
    write_cards(tmp_path, radeon())
    client = {"drm-engine-gfx": "0 ns", "drm-memory-vram": "1 KiB"}
    open_card(tmp_path, 4242, _client("0000:03:00.0") | client)
    compute_on(tmp_path, 4242, 5 * GIB)
    compute_on(tmp_path, 4343, GIB)
    # A process that uses another of the machine's cards, one whose number is none, and a node without a card.
    write_files(tmp_path / "sys/class/kfd/kfd/proc", {"4444/vram_778": "1", "self/vram_777": "1", "4545/vram_777": "?"})
    write_files(
        tmp_path / "sys/class/kfd/kfd/topology/nodes/0", {"properties": "cpu_cores_count 64\nbroken", "gpu_id": "0"}
    )
    found = _processes(source, 1.0)
    assert {pid: each.memory_bytes.value for (_, pid), each in found.items()} == {4242: 5 * GIB, 4343: GIB}
    assert {each.kind for each in found.values()} == {"compute"}
    # Its queues bypass the scheduler that counts the times.
    assert found[RADEON, 4242].sm_fraction == missing(Cause.NOT_SUPPORTED)


def test_processes_that_may_not_be_seen_are_not_listed(source, tmp_path):
    write_cards(tmp_path, radeon())
    (tmp_path / "proc/1").mkdir(parents=True)
    open_card(tmp_path, 4242, _client("0000:03:00.0"))
    (tmp_path / "proc/4242/fdinfo/10").unlink()
    (tmp_path / "proc/4242/fd/11").write_text("no link")
    assert _processes(source, 1.0) == {}
    # What had opened no card is asked again after a while.
    open_card(tmp_path, 1, _client("0000:03:00.0"))
    rounds = [bool(_processes(source, float(second))) for second in range(2, 14)]
    assert rounds == [False] * 9 + [True] * 3
    assert source.processes((), 20.0) == ()
    for process in (tmp_path / "proc").iterdir():
        shutil.rmtree(process)
    (tmp_path / "proc").rmdir()
    assert _processes(source, 21.0) == {}
    source.close()
