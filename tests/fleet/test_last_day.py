"""The energy and the idle time of a day, from what a Prometheus holds of it."""

from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import FleetWatch
from planner.fleet.last_day import CardDay, read_last_day
from planner.fleet.prometheus import Prometheus
from planner.fleet.sources import open_source

DAY = 86_400
KEY = "00000001-0000-0000-0000-000000000000"


def read(fake: FakePrometheus, *names: str) -> dict[str, CardDay]:
    with serving(fake) as url:
        return read_last_day(Prometheus(FleetConnection(url=url), {}), names or tuple({one[0] for one in fake.samples}))


def test_a_day_is_the_power_of_each_minute_and_idle_are_those_below_the_threshold_of_the_diagnosis():
    fake = FakePrometheus(dcgm_fleet(3, use=lambda place: (0.0, 9.0, 50.0)[place]))
    days = list(read(fake).values())
    assert days == [CardDay(70.0 * DAY, 1.0, DAY), CardDay(124.0 * DAY, 1.0, DAY), CardDay(370.0 * DAY, 1.0, 0.0)]
    assert "sum_over_time((DCGM_FI_DEV_GPU_UTIL{} < bool 10)[86400s:60s])" in fake.queries[0]
    fake.minutes = 360
    assert next(iter(read(fake).values())) == CardDay(70.0 * DAY / 4, 0.25, DAY / 4)


def test_series_of_several_pods_add_up_and_those_of_two_servers_do_not_count_twice():
    (sample,) = (one for one in dcgm_fleet(1) if one[0] == "DCGM_FI_DEV_POWER_USAGE")
    name, labels, watts = sample
    fake = FakePrometheus([sample, (name, {**labels, "exported_pod": "later"}, watts + 100)])
    fake.minutes = 720
    assert read(fake) == {KEY: CardDay((watts + 50) * DAY, 1.0, None)}
    fake.minutes = 1_440
    assert read(fake) == {KEY: CardDay((watts + 50) * DAY, 1.0, None)}


def test_the_first_of_two_metrics_counts_and_what_is_none_of_a_card_or_not_available_does_not():
    uuid = {"uuid": f"GPU-{KEY}"}
    fake = FakePrometheus(
        [
            ("nvidia_smi_power_draw_instant_watts", uuid, 300.0),
            ("nvidia_smi_power_draw_watts", uuid, 200.0),
            ("DCGM_FI_DEV_POWER_USAGE", {"UUID": "GPU-2"}, 9.2e18),
        ]
    )
    assert read(fake) == {KEY: CardDay(200.0 * DAY, 1.0, None)}
    assert read(fake, "DCGM_FI_DEV_GPU_TEMP") == {}
    fake.minutes = 0
    assert read(fake) == {}


def test_a_watch_reads_the_day_every_ten_minutes_as_far_as_its_source_can(tmp_path):
    fake = FakePrometheus(dcgm_fleet(1))
    refused = []

    def answer(path, form, headers):
        if refused and "_over_time" in form["query"]:
            return 422, {}, b'{"status":"error","errorType":"execution","error":"too many samples"}'
        return fake(path, form, headers)

    with serving(answer) as url:
        watch = FleetWatch(open_source([FleetConnection(url=url)], {}))
        watch.read_last_day()
        assert fake.queries == []
        for minutes, seconds, expected in ((1_440, 0, 1.0), (720, 300, 1.0), (720, 300, 0.5)):
            fake.minutes, fake.now = minutes, fake.now + seconds
            watch.poll()
            watch.read_last_day()
            assert watch.poll().days[KEY].held_fraction == expected
        refused.append(True)
        fake.now += 600
        watch.poll()
        watch.read_last_day()
        assert watch.fleet.days[KEY].held_fraction == 0.5
    scrape = tmp_path / "node1.prom"
    scrape.write_text('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n"} 97\n')
    watch = FleetWatch(open_source([FleetConnection(url=str(scrape))], {}))
    watch.poll()
    watch.read_last_day()
    assert watch.fleet.days == {}
