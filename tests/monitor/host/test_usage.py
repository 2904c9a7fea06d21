"""Usage of the host, counter rates and power from an energy counter."""

import psutil
import pytest

from planner.monitor.host import usage as host_module
from planner.monitor.host.usage import CounterRates, EnergyMeter, HostReader, cpu_shares
from planner.monitor.readings.reading import Cause


def _times(user, idle, **others):
    return {"user": float(user), "idle": float(idle), **{name: float(value) for name, value in others.items()}}


def test_shares_of_the_processors():
    before = [_times(0, 0, iowait=0, guest=0), _times(0, 0, iowait=0, guest=0)]
    after = [_times(5, 5, iowait=0, guest=5), _times(0, 6, iowait=4, guest=0)]
    readings, cores = cpu_shares(before, after)
    # The guest's five seconds are user's seconds too.
    assert readings["cpu_fraction"].value == pytest.approx(5 / 20)
    assert readings["io_wait_fraction"].value == pytest.approx(4 / 20)
    assert cores == (0.5, 0.0)


def test_shares_need_time_and_the_same_processors():
    one = [_times(5, 5)]
    readings, cores = cpu_shares(one, one)
    assert readings["cpu_fraction"].cause is Cause.NOT_YET
    assert cores == (0.0,)
    assert cpu_shares(one, [*one, *one])[0]["cpu_fraction"].cause is Cause.NOT_YET
    readings, _ = cpu_shares([_times(0, 0)], one)
    assert readings["io_wait_fraction"].cause is Cause.NOT_SUPPORTED
    assert cpu_shares([_times(0, 0), _times(9, 9)], [_times(5, 5), _times(9, 9)])[1] == (0.5, 0.0)


def test_the_machine_is_read():
    host = HostReader()
    first = host.read(0.0)
    assert first.readings["memory_used_bytes"].value > 0
    assert first.readings["network_receive_bytes_per_s"].cause is Cause.NOT_YET
    assert "swap_used_bytes" in first.readings
    second = host.read(1.0, slow=False)
    assert second.readings["network_receive_bytes_per_s"].value is not None
    assert "swap_used_bytes" not in second.readings
    assert len(second.cores) == psutil.cpu_count()


def test_a_machine_that_hides_its_disks_and_network_says_so(monkeypatch):
    def fail(**_arguments):
        raise OSError("hidden")

    monkeypatch.setattr(host_module.psutil, "disk_io_counters", lambda **_arguments: None)
    monkeypatch.setattr(host_module.psutil, "net_io_counters", fail)
    readings = HostReader().read(0.0).readings
    assert readings["disk_read_bytes_per_s"].cause is Cause.HIDDEN
    assert readings["network_transmit_bytes_per_s"].cause is Cause.HIDDEN


def test_rates_need_two_readings_and_begin_anew_with_the_counter():
    rates = CounterRates()
    assert rates.per_second("a", 0.0, 100) is None
    assert rates.per_second("a", 2.0, 300) == 100
    assert rates.per_second("a", 2.0, 300) is None
    assert rates.per_second("a", 3.0, 50) is None
    assert rates.per_second("a", 4.0, 60) == 10


def test_power_is_the_energy_of_the_last_second_whatever_the_interval():
    meter = EnergyMeter()
    watts = [meter.watts(at / 10, 30.0 * at) for at in range(31)]
    assert watts[0] is None
    assert watts[5] is None
    assert watts[12:] == pytest.approx([300.0] * 19)
    assert meter.watts(3.1, 0.0) is None


def test_used_and_available_memory_are_all_memory():
    readings = HostReader().read(0.0).readings
    parts = [readings[f"memory_{part}_bytes"].value for part in ("used", "available")]
    assert sum(parts) == psutil.virtual_memory().total
