"""One NVML session: MIG instances, processes, Xid events, GPM and failing calls."""

import os

import pytest
from fake_nvml_kit import A, B, card

from planner.monitor.host.processes import HostProcesses
from planner.monitor.nvml import Nvml, NvmlFailure, missing_reading_cause, opening_fault
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.sample import Xid
from planner.monitor.sampler.nvml_queries import SessionOverError
from planner.monitor.sampler.session import CardProcesses, NvmlSession

MIG = "MIG-11111111-0000-0000-0000-000000000000"


@pytest.fixture
def session(near_nvml):
    """Return a way to open the library on what it should say, and close it in the end."""
    opened = []

    def make(*cards, sees_same_pids=True, **general):
        near_nvml.say(*cards, **general)
        nvml = Nvml()
        made = NvmlSession(nvml, CardProcesses(nvml, HostProcesses(), sees_same_pids=sees_same_pids))
        made.open(5.0)
        opened.append(made)
        return made

    yield make
    for made in opened:
        made.close()


def read(session, now=0.0, *, slow=True):
    return session.read(now, 5.0, slow=slow, budget_seconds=10.0)


def test_a_mig_instance_reports_only_memory_and_activity(session):
    instance = {
        "0:0.uuid": MIG,
        "0:0.name": "NVIDIA H100 MIG 1g.10gb",
        "0:0.gpu_instance": 3,
        "0:0.compute_instance": 0,
        "0:0.memory.total": 10 * 2**30,
        "0:0.memory.used": 2**30,
        "0:0.units": 16,
        "0:3.gpm": 1,
        "0:3.gpm.2": 75,
        "0.gpm": 1,
    }
    near = session(card(0, A, mig=1, mig_devices=7, utilization=None, encoder=None) | instance)
    whole, part = near.devices
    assert (part.uuid, part.mig_parent, part.mig_instance) == (MIG, A, (3, 0))
    assert part.fact("memory_total_bytes") == 10 * 2**30
    assert part.fact("multiprocessors") == 16
    assert whole.fact("mig_enabled") == 1
    read(near)
    readings = read(near, 1.0)
    assert readings[MIG]["memory_used_bytes"].value == 2**30
    assert readings[MIG]["sm_active_fraction"].value == 0.75
    assert readings[MIG]["power_watts"].cause is Cause.MIG
    assert readings[MIG]["temperature_celsius"].cause is Cause.MIG
    assert readings[A]["utilization_fraction"].cause is Cause.MIG
    assert readings[A]["encoder_fraction"].cause is Cause.MIG
    assert readings[A]["power_watts"].value == 200


def test_a_mig_instance_of_unknown_size_is_found(session):
    instance = {"0:0.uuid": MIG, "0:0.gpu_instance": 1, "0:0.compute_instance": 0}
    near = session(card(0, A, mig=1, mig_devices=2) | instance)
    part = near.devices[1]
    assert part.name == "NVIDIA Test 0 MIG 0"
    assert part.facts["memory_total_bytes"].cause is Cause.NOT_SUPPORTED
    assert part.facts["multiprocessors"].cause is Cause.NOT_SUPPORTED
    assert read(near)[MIG]["memory_used_bytes"].cause is Cause.NOT_SUPPORTED


def test_a_card_with_uncountable_instances_has_none(session):
    assert len(session(card(0, A, mig=1)).devices) == 1


def test_instances_are_lost_with_their_card(session, near_nvml):
    instance = {"0:0.uuid": MIG, "0:0.gpu_instance": 1, "0:0.compute_instance": 0, "0:0.memory.total": 2**30}
    parts = card(0, A, mig=1, mig_devices=1) | instance
    near = session(parts, card(1, B))
    near_nvml.say(parts | {"0.error.*": 15}, card(1, B))
    assert set(read(near)) == {B}
    assert set(near.lost) == {A, MIG}
    assert {fault.kind for fault in near.faults} == {FaultKind.LOST}


def test_gpm_needs_two_samples_and_its_support_is_queried(session):
    near = session(card(0, A, gpm=1) | {"0.gpm.2": 81.5, "0.gpm.10": 40}, card(1, B))
    assert read(near)[A]["sm_active_fraction"].cause is Cause.NOT_YET
    readings = read(near, 1.0)
    assert readings[A]["sm_active_fraction"].value == pytest.approx(0.815)
    assert readings[A]["dram_active_fraction"].value == 0.4
    assert readings[A]["tensor_active_fraction"].cause is Cause.NOT_SUPPORTED
    assert readings[B]["sm_active_fraction"].cause is Cause.NOT_SUPPORTED


@pytest.mark.parametrize(("code", "cause"), [(3, Cause.NOT_SUPPORTED), (4, Cause.NO_PERMISSION), (999, Cause.FAILED)])
def test_failing_gpm_readings_have_a_cause(session, code, cause):
    near = session(card(0, A, gpm=1) | {"0.error.nvmlGpmQueryDeviceSupport": code})
    assert read(near)[A]["sm_active_fraction"].cause is cause


def test_an_unsupported_quantity_is_not_queried_again(session, near_nvml):
    near = session(card(0, A, fan=None))
    assert read(near)[A]["fan_fraction"].cause is Cause.NOT_SUPPORTED
    asked = near_nvml.calls().count("nvmlDeviceGetFanSpeed 0")
    assert "fan_fraction" not in read(near, 1.0, slow=False)[A]
    assert read(near, 2.0)[A]["fan_fraction"].cause is Cause.NOT_SUPPORTED
    assert near_nvml.calls().count("nvmlDeviceGetFanSpeed 0") == asked


def test_a_quantity_that_failed_once_is_queried_again(session, near_nvml):
    near = session(
        card(0, A) | {"0.error.nvmlDeviceGetFanSpeed": "999 0", "0.error.nvmlDeviceGetUtilizationRates": "17 0"}
    )
    first = read(near)[A]
    assert first["fan_fraction"].cause is Cause.FAILED
    assert first["utilization_fraction"].cause is Cause.HIDDEN
    assert read(near, 1.0)[A]["fan_fraction"].value == 0.3


def test_counters_are_converted_to_rates(session):
    fields = {"0.field.138": "1000 1100", "0.field.139": "0 50", "0.field.74": "0 250000000"}
    near = session(card(0, A) | fields)
    first, second = read(near), read(near, 0.5)
    assert first[A]["nvlink_transmit_bytes_per_s"].cause is Cause.NOT_YET
    # The slow ones are timed by the clock itself: both directions of a link at one time.
    assert second[A]["nvlink_transmit_bytes_per_s"].value == pytest.approx(
        2 * second[A]["nvlink_receive_bytes_per_s"].value
    )
    assert second[A]["power_capped_fraction"].value == 0.5


def test_power_comes_from_the_energy_counter_unless_it_stands_still(session):
    near = session(card(0, A) | {"0.field.83": "0 300000 300000 300000"})
    assert read(near)[A]["power_watts"].value == 200
    assert read(near, 1.0)[A]["power_watts"].value == 300
    assert read(near, 2.0)[A]["power_watts"].value == 200
    assert read(near, 3.0)[A]["energy_joules"].value == 300


def test_a_value_marked_as_unknown_by_the_driver_is_missing(session):
    near = session(card(0, A, fan=0xFFFFFFFF, reasons=0xFFFFFFFF))
    readings = read(near)[A]
    assert readings["fan_fraction"].cause is Cause.HIDDEN
    assert readings["clock_reasons"].value == 0xFFFFFFFF


@pytest.mark.parametrize(("kind", "told"), [(1, 45), (2, 45), (4, 45), (5, 45), (6, 45), (9, None)])
def test_a_field_value_is_read_in_its_reported_type(session, kind, told):
    reading = read(session(card(0, A) | {"0.field.82": 45, "0.field_type.82": kind}))[A]["memory_temperature_celsius"]
    assert (reading.value, reading.cause) == (told, None if told else Cause.UNREADABLE)


def test_a_time_slowed_by_heat_of_zero_is_not_read_while_the_driver_says_that_heat_slows_the_card(session):
    # Software thermal slow-down (0x20) is reported, while the counters of both kinds stand still.
    counters = {"0.field.251": "0 0", "0.field.252": "0 0"}
    near = session(card(0, A, reasons=0x20) | counters)
    read(near, now=0.0)
    second = read(near, now=1.0)[A]
    assert second["software_thermal_fraction"].cause is Cause.UNREADABLE
    assert second["hardware_thermal_fraction"].value == 0


def test_a_card_that_tells_neither_power_nor_energy_has_no_power(session):
    near = session(card(0, A, power=None))
    read(near)
    assert "power_watts" not in read(near)[A]


def test_a_card_lost_while_reading_field_values_is_lost(session, near_nvml):
    near = session(card(0, A), card(1, B))
    near_nvml.say(card(0, A) | {"0.field_error.82": 15}, card(1, B))
    assert set(read(near)) == {B}


def test_a_card_that_requires_a_reset_is_not_queried(session):
    near = session(card(0, A) | {"0.error.nvmlDeviceGetPowerUsage": 16}, card(1, B))
    assert set(read(near)) == {B}
    (fault,) = near.faults
    assert (fault.kind, fault.uuid, fault.detail) == (
        FaultKind.RESET_REQUIRED,
        A,
        "detected by nvmlDeviceGetPowerUsage",
    )


def test_a_card_lost_during_slow_readings_has_no_partial_readings(session):
    near = session(card(0, A) | {"0.error.nvmlDeviceGetPcieThroughput": 15}, card(1, B))
    assert set(read(near)) == {B}


@pytest.mark.parametrize(("code", "kind"), [(15, FaultKind.LOST), (16, FaultKind.RESET_REQUIRED)])
def test_a_card_lost_during_discovery_does_not_hide_others(session, code, kind):
    # What the library keeps in memory, its name and its UUID, is still told.
    near = session(card(0, A) | {"0.error.nvmlDeviceGetMaxClockInfo": code}, card(1, B))
    assert set(read(near)) == {B}
    assert [(fault.kind, fault.uuid) for fault in near.faults] == [(kind, "index-0")]


def test_a_card_without_answers_several_times_is_lost(session, near_nvml):
    near = session(card(0, A), card(1, B))
    near_nvml.say(card(0, A) | {"0.error.*": 999}, card(1, B))
    assert [set(read(near, float(at))) for at in range(4)] == [{A, B}, {A, B}, {B}, {B}]
    (fault,) = near.faults
    assert (fault.kind, fault.uuid, fault.detail) == (FaultKind.LOST, A, "detected by every call")


def test_a_card_that_answers_again_in_time_is_not_lost(session, near_nvml):
    near = session(card(0, A))
    near_nvml.say(card(0, A) | {"0.error.*": 999})
    assert read(near)[A]["temperature_celsius"].cause is Cause.FAILED
    near_nvml.say(card(0, A))
    read(near, 1.0)
    near_nvml.say(card(0, A) | {"0.error.*": 999})
    assert [set(read(near, at)) for at in (2.0, 3.0)] == [{A}, {A}]


def test_a_card_that_cannot_be_opened_is_reported_by_its_index(session):
    near = session(card(0, A), card(1, B) | {"1.error.nvmlDeviceGetHandleByIndex_v2": 4})
    assert [(device.uuid, device.state) for device in near.devices] == [(A, "running"), ("index-1", "lost")]
    assert near.faults[0].kind is FaultKind.NO_PERMISSION
    near.forget_unreachable_card(1)
    assert near.faults == []
    assert [device.uuid for device in near.devices] == [A]


@pytest.mark.parametrize("uuid_error", ["0.error.nvmlDeviceGetUUID", None])
def test_a_stale_handle_ends_the_session(session, near_nvml, uuid_error):
    near = session(card(0, A))
    read(near)
    stale = {"0.error.nvmlDeviceGetFanSpeed": 2}
    near_nvml.say((card(0, B) if uuid_error is None else card(0, A) | {uuid_error: 2}) | stale)
    with pytest.raises(SessionOverError, match="the handle of GPU-aaaa"):
        read(near, 1.0)


def test_a_handle_rejected_by_the_memory_query_ends_the_session(session, near_nvml):
    near = session(card(0, A))
    read(near)
    near_nvml.say(card(0, A) | {"0.error.*": 2})
    with pytest.raises(SessionOverError, match="is stale"):
        read(near, 1.0)


def test_a_card_that_rejects_one_query_is_not_lost(session, near_nvml):
    near = session(card(0, A))
    read(near)
    near_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetFanSpeed": 2})
    assert read(near, 1.0)[A]["fan_fraction"].cause is Cause.NOT_SUPPORTED


def test_slow_readings_are_spread_over_several_sweeps(session):
    near = session(card(0, A), card(1, B))
    first = near.read(0.0, 0.0, slow=True, budget_seconds=0.0)
    second = near.read(1.0, 0.0, slow=False, budget_seconds=0.0)
    third = near.read(2.0, 0.0, slow=False, budget_seconds=0.0)
    had = [[uuid for uuid in looked if "pcie_width" in looked[uuid]] for looked in (first, second, third)]
    assert had == [[A], [B], []]


def test_the_next_sweep_begins_with_the_waiting_cards(session):
    near = session(card(0, A), card(1, B))
    had = []
    for at in range(4):
        looked = near.read(float(at), 0.0, slow=True, budget_seconds=0.0)
        had += [uuid for uuid in looked if "pcie_width" in looked[uuid]]
    assert had == [A, B, A, B]


def test_processes_are_listed_with_details_from_the_operating_system(session):
    me, total = os.getpid(), 24 * 2**30
    listed = {
        "0.process.compute": f"{me}:4096 99999999:{2 * total} 4000000:-1",
        "0.process.graphics": f"{me}:8192",
        "0.usage": f"{me}:10:40:7 {me}:20:50:9 77:5:300:1",
    }
    near = session(card(0, A) | listed)
    processes = {process.pid: process for process in near.read_processes(0.0)}
    own = processes[me]
    assert (own.kind, own.memory_bytes.value, own.is_reliable) == ("compute", 4096, True)
    assert own.sm_fraction.value == 0.5
    assert own.memory_controller_fraction.value == 0.09
    assert own.host.memory_bytes > 0
    swapped = processes[99999999]
    assert not swapped.is_reliable
    assert swapped.memory_bytes.is_implausible
    assert swapped.host is None
    hidden = processes[4000000]
    assert hidden.memory_bytes.cause is Cause.HIDDEN
    assert hidden.is_reliable
    # The same samples do not count twice.
    (again,) = (process for process in near.read_processes(0.0) if process.pid == me)
    assert again.sm_fraction.cause is Cause.NOT_YET


def test_pids_of_another_namespace_are_not_matched(session):
    near = session(card(0, A) | {"0.process.compute": f"{os.getpid()}:4096"}, sees_same_pids=False)
    (process,) = near.read_processes(0.0)
    assert process.host is None


def test_a_card_lost_while_its_processes_are_listed_is_lost(session):
    near = session(card(0, A) | {"0.error.nvmlDeviceGetComputeRunningProcesses_v3": 15}, card(1, B))
    assert near.read_processes(0.0) == ()
    assert set(near.lost) == {A}


def test_a_card_without_a_process_list_has_no_processes(session):
    near = session(card(0, A) | {"0.error.nvmlDeviceGetComputeRunningProcesses_v3": 3})
    assert near.read_processes(0.0) == ()


def test_version_1_of_the_process_structure_is_read(session):
    gone = {f"0.error.nvmlDeviceGetComputeRunningProcesses{version}": 13 for version in ("_v2", "_v3")}
    near = session(card(0, A) | gone | {"0.process.compute": "5:-1 6:100"})
    assert [(one.pid, one.memory_bytes.value) for one in near.read_processes(0.0)] == [(5, None), (6, 100)]
    gone["0.error.nvmlDeviceGetComputeRunningProcesses"] = 999
    near = session(card(0, A) | gone)
    assert near.read_processes(0.0) == ()


def test_xid_errors_are_reported_once_with_their_card(near_nvml, session):
    near = session(card(0, A), card(1, B))
    assert near.read_xids() == ()
    near_nvml.say(card(0, A), card(1, B), events=("1 8 79", "0 16 1", "0 8 31"))
    assert near.read_xids() == (Xid(B, 79), Xid(A, 31))
    assert near.read_xids() == ()


def test_the_xid_of_a_lost_card_keeps_its_card(near_nvml, session):
    near = session(card(0, A), card(1, B))
    near_nvml.say(card(0, A), card(1, B) | {"1.error.*": 15}, events=("1 8 79",))
    assert set(read(near)) == {A}
    assert near.read_xids() == (Xid(B, 79),)


def test_many_xid_errors_are_reported_in_parts(near_nvml, session):
    near = session(card(0, A))
    near_nvml.say(card(0, A), events=("0 8 31",) * 150)
    assert len(near.read_xids()) == 100
    assert len(near.read_xids()) == 50


def test_a_changed_or_failing_card_count_is_a_change(near_nvml, session):
    near = session(card(0, A))
    assert not near.has_changed()
    near_nvml.say(card(0, A), card(1, B))
    assert near.has_changed()
    near_nvml.say(card(0, A), error__nvmlDeviceGetCount_v2=1)
    assert near.has_changed()


def test_added_and_removed_instances_are_a_change(near_nvml, session):
    def instance(at, uuid):
        return {f"0:{at}.uuid": uuid, f"0:{at}.gpu_instance": at, f"0:{at}.compute_instance": 0}

    whole, divided = card(0, A, mig=0), card(0, A, mig=1, mig_devices=2)
    near = session(whole)
    assert not near.has_changed()
    near_nvml.say(divided | instance(0, MIG))
    assert near.has_changed()
    near = session(divided | instance(0, MIG))
    assert not near.has_changed()
    near_nvml.say(divided | instance(0, MIG) | instance(1, MIG.replace("1", "2")))
    assert near.has_changed()
    near_nvml.say(divided | instance(0, MIG) | {"0.error.nvmlDeviceGetMigMode": 999})
    assert not near.has_changed()
    near_nvml.say(divided)
    assert near.has_changed()


def test_nvml_is_shut_down_if_opening_fails_half_way(near_nvml):
    near_nvml.say(card(0, A), error__nvmlDeviceGetCount_v2=999)
    nvml = Nvml()
    with pytest.raises(NvmlFailure, match="nvmlDeviceGetCount returned 999"):
        NvmlSession(nvml, CardProcesses(nvml, HostProcesses(), sees_same_pids=True)).open(0.0)
    assert near_nvml.calls()[-1] == "nvmlShutdown "


def test_unreported_versions_are_empty(session):
    errors = dict.fromkeys(
        (
            "error.nvmlSystemGetDriverVersion",
            "error.nvmlSystemGetNVMLVersion",
            "error.nvmlSystemGetCudaDriverVersion_v2",
        ),
        999,
    )
    assert session(card(0, A) | errors).versions == ("", "", "")


def test_a_card_without_a_pci_address_is_named_by_its_uuid(session):
    near = session(card(0, A, pci=None, name=None))
    (device,) = near.devices
    assert (device.name, device.pci_bus_id, device.raw_name) == (A, "", None)


def test_a_pci_address_that_is_not_text_is_empty(session):
    assert session(card(0, A, pci="\\xf8\\xf8")).devices[0].pci_bus_id == ""


def test_a_lost_card_is_not_queried_by_the_older_memory_call(session, near_nvml):
    near = session(card(0, A))
    near_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetMemoryInfo_v2": 15})
    asked = near_nvml.calls().count("nvmlDeviceGetMemoryInfo 0")
    assert read(near) == {}
    assert near_nvml.calls().count("nvmlDeviceGetMemoryInfo 0") == asked


def test_unknown_nvml_codes_are_failures():
    assert missing_reading_cause(12345) is Cause.FAILED
    assert opening_fault(12345) is FaultKind.DRIVER_ERROR
