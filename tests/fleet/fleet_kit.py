"""A Prometheus for the tests: answers the queries that the program asks, from scrapes that it plays, on loopback."""

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs
from urllib.request import urlopen

from planner.parsing.metrics import MetricSample

Page = tuple[int, Mapping[str, str], bytes]
Answering = Callable[[str, Mapping[str, str], Mapping[str, str]], Page]
"""A function of the path, the form or query, and the headers of a request."""


@contextmanager
def serving(answer: Answering, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve pages on loopback, over TLS with a `context`; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._reply({name: values[0] for name, values in parse_qs(form).items()})

        def _reply(self, form: Mapping[str, str]) -> None:
            status, headers, content = answer(
                self.path, form, {name.lower(): value for name, value in self.headers.items()}
            )
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Say nothing of clients that go away, which some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class FakePrometheus:
    """Evaluates the program's queries over samples; `now` is its clock, `seen` says when a series was last scraped.

    `growth` is what `rate` and `increase` return of a series, by default 0; `minutes` of a day are held.
    """

    def __init__(self, samples: list[MetricSample], now: float = 1_000_000.0) -> None:
        self.samples, self.now = samples, now
        self.scrape_seconds = 15.0
        self.growth: dict[str, float] = {}
        self.minutes = 1_440
        self.seen: Callable[[Mapping[str, str]], float] = lambda _labels: self.now
        self.extra: dict[str, Any] = {}
        self.queries: list[str] = []

    def __call__(self, path: str, form: Mapping[str, str], _headers: Mapping[str, str]) -> Page:
        if path.endswith("buildinfo"):
            return _page({"status": "success", "data": {"version": "2.42.0"}})
        self.queries.append(form["query"])
        if path.endswith("query_range"):
            start, end, step = (float(form[name]) for name in ("start", "end", "step"))
            times = [start + place * step for place in range(int((end - start) / step) + 1)]
            if len(times) > 11_000:
                error = "exceeded maximum resolution of 11,000 points per timeseries."
                return _page({"status": "error", "errorType": "bad_data", "error": error}, 400)
            series = [
                {"metric": labels, "values": [[at, str(value)] for at in times]}
                for labels, value in self.evaluate(form["query"])
            ]
            return _page({"status": "success", "data": {"resultType": "matrix", "result": series}, **self.extra})
        if form["query"].endswith("[600s]"):
            times = [self.now - place * self.scrape_seconds for place in range(20, 0, -1)]
            series = [
                {"metric": labels, "values": [[at, str(value)] for at in times]}
                for labels, value in self.evaluate(form["query"].removesuffix("[600s]"))
            ]
            return _page({"status": "success", "data": {"resultType": "matrix", "result": series}, **self.extra})
        series = [{"metric": labels, "value": [self.now, str(value)]} for labels, value in self.evaluate(form["query"])]
        return _page({"status": "success", "data": {"resultType": "vector", "result": series}, **self.extra})

    def evaluate(self, query: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """Yield the labels and values of one of the program's queries."""
        if query.startswith("count by (__name__)"):
            names: dict[str, int] = {}
            for labels, _ in self.evaluate(query.removeprefix("count by (__name__) (")[:-1]):
                names[labels["__name__"]] = names.get(labels["__name__"], 0) + 1
            yield from (({"__name__": name}, count) for name, count in names.items())
            return
        if top := re.fullmatch(r"topk\(1, (\S+)\)", query):
            yield from list(self._selected(top[1], ""))[:1]
            return
        parts = re.findall(
            r'label_replace\((\w+)\(\(?([\w:]+)\{(.*?)\}(?: < bool ([\d.]+)\))?(?:\[[\w:]+\])?\),"(\w+)","', query
        )
        for function, name, wanted, below, label in parts:
            for labels, value in self._selected(name, wanted):
                seen = float(value < float(below)) if below else value
                yield {**labels, label: name}, self._computed(function, name, labels, seen)
        selector = re.fullmatch(r'\{__name__=~"([^"]*)"(?:,(.*))?\}', query)
        if selector:
            for name in {name for name, _, _ in self.samples if re.fullmatch(selector[1], name)}:
                for labels, value in self._selected(name, selector[2] or ""):
                    yield {"__name__": name, **labels}, value
        host = re.search(r"node_\w+", query)
        if not parts and not selector and host:
            yield from ((labels, value) for labels, value in self._selected(host[0], ""))

    def _computed(self, function: str, name: str, labels: Mapping[str, str], value: float) -> float:
        if function == "timestamp":
            return self.seen(labels)
        if function.endswith("_over_time"):
            return self.minutes * (value if function.startswith("sum") else 1)
        return self.growth.get(name, 0.0 if function == "rate" else value)

    def _selected(self, name: str, wanted: str) -> Iterator[tuple[Mapping[str, str], float]]:
        matchers = re.findall(r'(\w+)="([^"]*)"', wanted)
        for other, labels, value in self.samples:
            if other == name and all(labels.get(label) == text for label, text in matchers):
                yield labels, value


def _page(value: object, status: int = 200) -> Page:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def dcgm_fleet(
    cards: int, per_host: int = 8, use: Callable[[int], float] = lambda place: place % 101
) -> list[MetricSample]:
    """Return the samples of `cards` H100, as dcgm-exporter writes them; `use` is the utilization of each in percent."""
    samples: list[MetricSample] = []
    for place in range(cards):
        host, number = divmod(place, per_host)
        labels = {
            "gpu": str(number),
            "UUID": f"GPU-{place + 1:08x}-0000-0000-0000-000000000000",
            "pci_bus_id": f"00000000:{number:02X}:00.0",
            "device": f"nvidia{number}",
            "modelName": "NVIDIA H100 80GB HBM3",
            "Hostname": f"node{host + 1}",
            "DCGM_FI_DRIVER_VERSION": "550.54.15",
            "instance": f"10.0.{host // 250}.{host % 250}:9400",
            "job": "dcgm",
            **({"exported_pod": f"train-{place // 16}", "exported_namespace": "ml"} if place % 3 else {}),
        }
        percent = use(place)
        samples += [MetricSample(name, labels, value) for name, value in dcgm_values(percent, place).items()]
    return samples


def dcgm_values(percent: float, place: int = 0) -> dict[str, float]:
    """Return the default metrics of dcgm-exporter for a card that is `percent` utilized."""
    return {
        "DCGM_FI_DEV_GPU_UTIL": percent,
        "DCGM_FI_DEV_MEM_COPY_UTIL": percent / 2,
        "DCGM_FI_DEV_FB_USED": 500 + 700 * percent,
        "DCGM_FI_DEV_FB_FREE": 80_500 - 700 * percent,
        "DCGM_FI_DEV_FB_RESERVED": 559,
        "DCGM_FI_DEV_POWER_USAGE": 70 + 6 * percent,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1e9 + place,
        "DCGM_FI_DEV_GPU_TEMP": 35 + percent / 3,
        "DCGM_FI_DEV_MEMORY_TEMP": 45 + percent / 3,
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_MEM_CLOCK": 2619,
        "DCGM_FI_DEV_ENC_UTIL": 0,
        "DCGM_FI_DEV_DEC_UTIL": 0,
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0,
        "DCGM_FI_DEV_XID_ERRORS": 0,
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 0,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 0,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": percent / 100,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": percent / 300,
        "DCGM_FI_PROF_DRAM_ACTIVE": percent / 250,
        "DCGM_FI_PROF_PCIE_TX_BYTES": 1e6 * percent,
        "DCGM_FI_PROF_PCIE_RX_BYTES": 2e6 * percent,
    }


def exposition(samples: Iterable[MetricSample]) -> str:
    """Return samples as an exporter writes them; what Prometheus adds to them is left out."""
    lines = []
    for name, labels, value in samples:
        own = {key.removeprefix("exported_"): text for key, text in labels.items() if key not in ("instance", "job")}
        pairs = ",".join(f'{key}="{text}"' for key, text in own.items())
        lines.append(f"{name}{{{pairs}}} {value}\n")
    return "".join(lines)


@contextmanager
def real_prometheus(
    program: Path, folder: Path, player: str, targets: Mapping[str, str], scrape_seconds: int
) -> Iterator[str]:
    """Run a Prometheus over the pages of a `player`, by path and instance; yield its address when it is ready."""
    scraped = "".join(
        f"  - job_name: job{number}\n    metrics_path: {path}\n    static_configs:\n"
        f"      - targets: ['{player.removeprefix('http://')}']\n        labels: {{instance: '{instance}'}}\n"
        for number, (path, instance) in enumerate(targets.items())
    )
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {scrape_seconds}s}}\nscrape_configs:\n{scraped}"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}")
    more = (f"--web.listen-address={address}", "--log.level=error", "--storage.tsdb.retention.time=10d")
    with subprocess.Popen([program, *options, *more]) as process:
        try:
            for _ in range(600):
                try:
                    with urlopen(f"http://{address}/-/ready", timeout=5):
                        break
                except OSError:
                    sleep(0.05)
            yield f"http://{address}"
        finally:
            process.kill()
