"""A real Prometheus scrapes a player: real scrapes, our exposition, a rack and an inference server."""

import os
import shutil
from pathlib import Path
from time import sleep, time

import pytest
import scrapes
from fleet_kit import dcgm_fleet, exposition, real_prometheus, serving

from planner.errors import PlannerError
from planner.fleet import last_day
from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import FleetWatch
from planner.fleet.gpu_history import gpu_history
from planner.fleet.last_day import read_last_day
from planner.fleet.sources import open_source

PROGRAM = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
TRUTH = Path(__file__).parent.parent / "truth" / "exporters"
SERVER = """\
vllm:num_requests_running{{model_name="m",engine="0"}} 3
vllm:generation_tokens_total{{model_name="m",engine="0"}} {tokens}
vllm:time_to_first_token_seconds_bucket{{le="0.5",model_name="m",engine="0"}} {tokens}
vllm:time_to_first_token_seconds_bucket{{le="+Inf",model_name="m",engine="0"}} {tokens}
vllm:time_to_first_token_seconds_sum{{model_name="m",engine="0"}} {tokens}
vllm:time_to_first_token_seconds_count{{model_name="m",engine="0"}} {tokens}
"""

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not PROGRAM, reason="needs Debian's prometheus, or the variable PROMETHEUS with its path"),
]


def test_what_a_real_prometheus_scrapes_is_read(tmp_path, monkeypatch):
    begun = time()
    rack = dcgm_fleet(16)
    pages = {
        **{f"/truth/{path.stem}": path.read_text() for path in TRUTH.glob("*.metrics")},
        "/ours": scrapes.OURS,
        **{f"/node{node}": exposition(one for one in rack if one[1]["Hostname"] == f"node{node}") for node in (1, 2)},
    }

    def answer(path, _form, _headers):
        moving = "" if "node" not in path else f'DCGM_FI_DEV_POWER_VIOLATION{{gpu="0",UUID="{uuid}"}} {ns()}\n'
        text = SERVER.format(tokens=int(100 * (time() - begun))) if path == "/vllm" else pages[path] + moving
        return 200, {"Content-Type": "text/plain; version=0.0.4"}, text.encode()

    def ns() -> float:
        return 2.5e8 * (time() - begun)

    uuid = rack[0][1]["UUID"]
    targets = {path: f"{path.strip('/').replace('/', '-')}:9400" for path in (*pages, "/vllm")}
    with serving(answer) as player, real_prometheus(Path(PROGRAM), tmp_path, player, targets, 1) as url:
        source = open_source([FleetConnection(url=url)], {})
        watch = FleetWatch(source)
        for _ in range(100):
            try:
                fleet = watch.poll()
                if len(fleet.cards) == 16 + len(list(TRUTH.glob("*"))) + 2 and fleet.servers:
                    break
            except PlannerError:  # not scraped yet
                pass
            sleep(0.1)
        sleep(4)  # some scrapes, of which rates are
        source = open_source([FleetConnection(url=url)], {})
        watch = FleetWatch(source)
        fleet = watch.poll()
        assert source.server.version().startswith("2.")
        assert fleet.interval_seconds == pytest.approx(1.0, abs=0.5)
        assert len(fleet.cards) == 16 + len(list(TRUTH.glob("*"))) + 2
        by_host = {card.host: card for card in fleet.cards}
        load = by_host["truth-linux-x86_64__nvidia-l40s__595.80__load"]
        assert (load.value("power_watts"), load.device.name) == (110.23, "NVIDIA L40S")
        assert by_host["ours"].device.mig_parent == "cccc0000-1"
        first = fleet.cards_of("node1")[0]
        assert 0 < first.value("power_capped_fraction") <= 0.26  # the rate of a minute, of which seconds are known
        assert fleet.cards_of("node1")[1].work[0].title == "ml/train-0"
        assert fleet.servers[0].run.first_token.percentiles[0].value <= 0.5
        assert (fleet.servers[0].output_tokens_per_s or 0) > 0
        watch.load_last_minutes()
        assert set(watch.diagnose().verdicts) == {card.key for card in fleet.cards}
        history = gpu_history(source, first, fleet.at_seconds, 60.0, 600, 1.0)
        assert set(history.series(first.key, "power_watts").values) == {70.0}
        # It has scraped for some seconds, perhaps not at a full minute: of the day, these seconds are held.
        monkeypatch.setattr(last_day, "_STEP_SECONDS", 1)
        monkeypatch.setattr(last_day, "_STEPS", 86_400)
        (one,) = (day for key, day in read_last_day(source.server, source.names[0]).items() if key == first.key)
        seconds = round(one.held_fraction * 86_400)
        assert 3 <= seconds <= 120
        # Seconds and energy are two questions, between which a second may end.
        assert one.joules == pytest.approx(70.0 * seconds, abs=70.0)
        assert seconds - 10 < one.idle_seconds <= seconds  # which is asked for just before
        with pytest.raises(PlannerError, match="11,000 points"):
            source.server.query_range("up", 0, 20_000, 1)
