"""Measure a fleet in the window: its first paint, what a poll takes of a core, and how memory grows.

python benchmarks/fleet.py                              a Prometheus that is played, 1,000 cards
python benchmarks/fleet.py --prometheus PROGRAM         a real one, which scrapes a player and holds a day of its past
python benchmarks/fleet.py --prometheus debian          the same with Debian's package, which is fetched with apt-get
python benchmarks/fleet.py --polls 240                  an hour of polls at the usual 15 seconds, one after another
python benchmarks/fleet.py --polls 240 --cards 100      the same in a minute

The server and what it scrapes run in processes of their own. Times of processors are this process's, so that they say
what the window costs; the share of a core is that of a poll every 15 seconds. A played Prometheus has other readings
at each poll. Memory is compared with that after the first 80 polls, when all that is kept is there: 64 readings of each
quantity.
"""

import argparse
import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import random
from time import monotonic, process_time, sleep, thread_time, time
from typing import TYPE_CHECKING

from planner.parsing.metrics import MetricSample

if TYPE_CHECKING:
    from planner.gui.monitor.fleet.fleet_page import FleetPage

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "fleet")]

from fleet_kit import (  # noqa: E402  # path above
    Answering,
    FakePrometheus,
    Page,
    dcgm_fleet,
    dcgm_values,
    exposition,
    real_prometheus,
    serving,
)

INTERVAL_SECONDS = 15.0
DAY_SECONDS = 86_400
PAST_STEP_SECONDS = 600
PAST_METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED")
WARM_UP = 80
"""Polls after which all readings that are kept are there: the last 64 of each quantity."""
PAINTED_EVERY = 8
FIRST_SECONDS, SHARE, GROWTH = 1.0, 0.05, 1.05


def main() -> None:
    """Print what a fleet of the asked size costs, and exit with 1 if it is more than it may be with `--check`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=1_000)
    parser.add_argument("--polls", type=int, default=100, help="polls in all; memory is compared after the first 80")
    parser.add_argument("--prometheus", help="path of a Prometheus with promtool beside it, or debian")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit of the manual is passed")
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["GPU_PLANNER_HOME"] = str(folder)
        if arguments.prometheus is None:
            url = stack.enter_context(in_child(serve_played, arguments.cards))
        else:
            program = debian_program(folder) if arguments.prometheus == "debian" else Path(arguments.prometheus)
            player = stack.enter_context(in_child(serve_scrapes, arguments.cards))
            print(f"a day of the past: {write_past(program, folder, arguments.cards):,} samples")
            targets = {
                f"/node{host + 1}": f"10.0.{host // 250}.{host % 250}:9400" for host in range(-(-arguments.cards // 8))
            }
            url = stack.enter_context(real_prometheus(program, folder, player, targets, round(INTERVAL_SECONDS)))
            sleep(2 * INTERVAL_SECONDS + 5)
        is_kept = measure(url, arguments.polls)
    sys.exit(0 if is_kept or not arguments.check else 1)


def measure(url: str, polls: int) -> bool:
    """Show the fleet in a window, poll it, and print what that takes; return whether every limit is kept."""
    from PySide6.QtWidgets import QApplication

    from planner.fleet.connection import FleetConnection
    from planner.gui.monitor.fleet.fleet_page import FleetPage
    from planner.gui.settings import SettingsStore
    from planner.gui.theme import Theme
    from planner.gui.workspace import Workspace
    from planner.network import HttpClient
    from planner.plan.catalog import load_catalog

    app = QApplication([])
    theme = Theme(app, "light")
    workspace = Workspace(load_catalog(), SettingsStore(Path(os.environ["GPU_PLANNER_HOME"]) / "settings.json"))
    waited = watch_waiting(HttpClient)
    page = FleetPage(workspace, theme)
    theme.apply_style_sheet(page)
    page.resize(1280, 800)
    page.show()
    app.processEvents()
    begun, used = monotonic(), process_time()
    page.connect_to(FleetConnection(url=url))
    until(lambda: page.view is not None)
    page.grab()
    first, wall = process_time() - used, monotonic() - begun - sum(waited)
    print(f"{len(page.view.rows):,} cards on {len(page.view.fleet.host_names):,} hosts")
    print(
        f"first paint: {first:.2f} s of processor time after the answers, {wall:.2f} s on the clock at a load of "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    is_fast = print_aim("first paint", first, FIRST_SECONDS, f"{first:.2f} s", f"{FIRST_SECONDS:g} s")
    until(lambda: page.view.fleet.verdicts and not page.feed.is_polling)
    share, grown = poll_often(page, polls)
    is_cheap = print_aim("a poll every 15 s", share, SHARE, f"{share:.1%} of a core", f"{SHARE:.0%}")
    is_flat = polls <= WARM_UP or print_aim("memory, of that when full", grown, GROWTH, f"{grown:.3f}", f"{GROWTH:g}")
    open_card(page, waited)
    page.shut_down()
    return is_fast and is_cheap and is_flat


def print_aim(name: str, value: float, most: float, shown: str, aim: str) -> bool:
    """Print a value with its aim, and return whether it is met."""
    print(f"{name}: {shown} (aim ≤ {aim}: {'met' if value <= most else 'missed'})", flush=True)
    return value <= most


def until(holds: Callable[[], object]) -> None:
    """Handle events until that holds, without keeping a core busy."""
    from PySide6.QtWidgets import QApplication

    deadline = monotonic() + 300
    while not holds():
        QApplication.processEvents()
        sleep(0.005)
        if monotonic() > deadline:
            raise SystemExit("nothing after five minutes")


def poll_often(page: "FleetPage", polls: int) -> tuple[float, float]:
    """Poll one time after another; print and return the share of a core at the usual interval, and memory's growth."""
    import psutil

    process = psutil.Process()
    spent, longest, memory = [], 0.0, 0
    for number in range(polls):
        used = process_time()
        page.feed.poll()
        until(lambda: not page.feed.is_polling)
        spent.append(process_time() - used)
        if number % PAINTED_EVERY == 0:
            painted = thread_time()
            page.feed.updated.emit(page.view)
            page.grab()
            longest = max(longest, thread_time() - painted)
        if number == min(WARM_UP, polls - 1):
            gc.collect()
            memory = process.memory_info().rss
    share = sum(spent) / len(spent) / INTERVAL_SECONDS
    gc.collect()
    grown = process.memory_info().rss / memory
    print(f"a poll takes {sum(spent) / len(spent):.3f} s of a core")
    print(f"showing and painting it takes the window's thread at most {1e3 * longest:.0f} ms")
    print(f"memory after {polls:,} polls: {grown:.3f} of that after {min(WARM_UP, polls)} ({memory / 2**20:.0f} MiB)")
    return share, grown


def open_card(page: "FleetPage", waited: list[float]) -> None:
    """Open a card, and print how long its last day takes to be drawn."""
    page.open_card(page.view.rows[0].card.key)
    until(lambda: page.card.plots.panels)
    begun, before = monotonic(), sum(waited)
    page.card.span.setCurrentIndex(2)
    page.card.span.activated.emit(2)
    until(lambda: not page.card.status.text())
    page.grab()
    print(f"a card's last day is drawn {monotonic() - begun - (sum(waited) - before):.2f} s after the answers")


def watch_waiting(client: type) -> list[float]:
    """Return a list that grows by the seconds of each request, from its beginning to the end of its answer."""
    waited: list[float] = []
    send = client.send

    def timed(self: object, *arguments: object) -> object:
        begun = monotonic()
        try:
            return send(self, *arguments)
        finally:
            waited.append(monotonic() - begun)

    client.send = timed
    return waited


def serve_played(pipe: Connection, cards: int) -> None:
    """Serve a played Prometheus until the pipe is closed."""
    _serve(pipe, played(dcgm_fleet(cards)))


def played(samples: list[MetricSample]) -> Answering:
    """Return the answers of a Prometheus that has just scraped `samples`; each card has the values of another next."""
    fake, turn = FakePrometheus(samples, now=time()), itertools.count()
    a_card = len(dcgm_values(0.0))

    def answer(path: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Page:
        fake.now = time()
        shift = next(turn) % (len(samples) // a_card) * a_card
        moved = zip(samples, samples[shift:] + samples[:shift], strict=True)
        fake.samples = [
            (name, labels, value + random() if name == "DCGM_FI_DEV_POWER_USAGE" else value)
            for (name, labels, _), (_, _, value) in moved
        ]
        return fake(path, form, headers)

    return answer


def serve_scrapes(pipe: Connection, cards: int) -> None:
    """Serve the metrics of each host until the pipe is closed."""
    samples = dcgm_fleet(cards)
    hosts: dict[str, list[object]] = {}
    for sample in samples:
        hosts.setdefault(f"/{sample[1]['Hostname']}", []).append(sample)
    pages = {path: exposition(of_host).encode() for path, of_host in hosts.items()}
    _serve(pipe, lambda path, _form, _headers: (200, {"Content-Type": "text/plain; version=0.0.4"}, pages[path]))


def _serve(pipe: Connection, answer: Callable[..., object]) -> None:
    with serving(answer) as url:
        pipe.send(url)
        with suppress(EOFError):
            pipe.recv()


@contextmanager
def in_child(serve: Callable[[Connection, int], None], cards: int) -> Iterator[str]:
    """Run a server in a process of its own, and yield its address."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=serve, args=(there, cards), daemon=True)
    child.start()
    try:
        yield here.recv()
    finally:
        child.kill()
        child.join()


def debian_program(folder: Path) -> Path:
    """Return the Prometheus of Debian's package, which is fetched and unpacked into `folder`."""
    subprocess.run(["apt-get", "download", "prometheus"], cwd=folder, check=True, capture_output=True)
    (package,) = folder.glob("prometheus_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "debian"], check=True)
    return folder / "debian" / "usr" / "bin" / "prometheus"


def write_past(program: Path, folder: Path, cards: int) -> int:
    """Write a day of the past of every card with promtool, and return the number of samples."""
    end = int(time()) // PAST_STEP_SECONDS * PAST_STEP_SECONDS - 2 * PAST_STEP_SECONDS
    times = range(end - DAY_SECONDS, end, PAST_STEP_SECONDS)
    text, count = folder / "past.txt", 0
    samples = dcgm_fleet(cards)
    with text.open("w") as stream:
        for name in PAST_METRICS:
            stream.write(f"# TYPE {name} gauge\n")
            for _, labels, value in (sample for sample in samples if sample[0] == name):
                line = exposition([(name, labels, value)]).rpartition("} ")[0]
                line = f'{line},instance="{labels["instance"]}",job="past"}} {value}'
                stream.writelines(f"{line} {at}\n" for at in times)
                count += len(times)
        stream.write("# EOF\n")
    promtool = program.with_name("promtool")
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"]
    subprocess.run(command, check=True, capture_output=True)
    text.unlink()
    return count


if __name__ == "__main__":
    main()
