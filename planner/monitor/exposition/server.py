"""The current readings, verdicts and predictions as Prometheus' metrics, served over HTTP or written to a file.

A scrape reads nothing anew. By default only this machine is served; with TLS and a token if asked.
"""

import hmac
import re
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol, Self
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from planner import __version__
from planner.errors import SpecError
from planner.monitor.diagnosis.verdict import OtherFinding, Verdict
from planner.monitor.exposition.names import (
    AGE,
    BUILD,
    CARD_LABELS,
    CARD_SERIES,
    DIAGNOSIS,
    FAMILIES,
    FAULT,
    HOST_SERIES,
    INFO,
    PLAN_MEMORY,
    PLAN_POWER,
    PROCESSES,
    STATE,
    STATES,
    XIDS,
    ExposedSeries,
)
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.readings.sample import Sample
from planner.storage import write_atomically

_Family = GaugeMetricFamily | CounterMetricFamily
_SILENT_CAUSES: Final = (Cause.NO_ANSWER, Cause.RELEASED)


class Prediction(Protocol):
    """A plan's prediction for a GPU: memory in bytes, and power in watts if it is known."""

    @property
    def memory_bytes(self) -> int:
        """Return the predicted memory in bytes."""

    @property
    def power_watts(self) -> float | None:
        """Return the predicted power in watts, None if unknown."""


class Exposition(Collector):
    """The current readings, verdicts and predictions for Prometheus, kept by one thread and collected by others.

    Unknown and implausible readings have no series, so that silence is never shown as 0.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest = Latest()
        self._sampled_at: float | None = None
        self._xids: Counter[tuple[str, int]] = Counter()
        self._verdicts: Mapping[str, Verdict] = {}
        self._predictions: Mapping[str, Prediction] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def note(self, update: Inventory | Sample) -> None:
        """Use an update of the readings."""
        with self._lock:
            if isinstance(update, Sample):
                self._latest.note_sample(update)
                self._sampled_at = monotonic()
                self._xids.update(update.xids)
            else:
                self._latest.note_inventory(update)

    def note_verdicts(self, verdicts: Mapping[str, Verdict]) -> None:
        """Use the current verdicts, by UUID."""
        self._verdicts = verdicts

    def note_predictions(self, predictions: Mapping[str, Prediction]) -> None:
        """Use the predictions of the plan for each GPU, by UUID."""
        self._predictions = predictions

    def collect(self) -> Iterator[_Family]:
        """Return all metrics of this instant."""
        with self._lock:
            families = {**self._metric_families(), **self._other_families()}
        return iter(family for family in families.values() if family.samples)

    def _metric_families(self) -> dict[str, _Family]:
        families: dict[str, _Family] = {}
        for series in CARD_SERIES:
            family = _add_family(families, series, CARD_LABELS)
            for device in self._latest.inventory.devices:
                reading = device.facts.get(series.metric.name) or self._latest.reading(device.uuid, series.metric.name)
                _add_reading(family, series, _card_labels(device, self._latest), reading)
        for series in HOST_SERIES:
            if series.metric.name in self._latest.host:
                reading = self._latest.host[series.metric.name]
                _add_reading(_add_family(families, series, ()), series, (), reading)
        return families

    def _other_families(self) -> dict[str, _Family]:
        made = {
            about.name: _family(
                about.name,
                about.about,
                about.kind,
                about.labels if about in (AGE, BUILD) else CARD_LABELS + about.labels,
            )
            for about in FAMILIES
        }
        inventory = self._latest.inventory
        cards = {device.uuid: _card_labels(device, self._latest) for device in inventory.devices}
        for device in inventory.devices:
            self._add_card(made, device, cards[device.uuid])
        for (uuid, number), count in self._xids.items():
            made[XIDS.name].add_metric((*cards.get(uuid, ("", uuid)), str(number)), count)
        for fault in inventory.faults:
            labels = cards.get(fault.uuid or "", ("", fault.uuid or ""))
            made[FAULT.name].add_metric((*labels, fault.kind.value, fault.description.severity), 1)
        if self._sampled_at is not None:
            made[AGE.name].add_metric((), monotonic() - self._sampled_at)
        made[BUILD.name].add_metric((__version__,), 1)
        return made

    def _add_card(self, made: Mapping[str, _Family], device: Device, labels: tuple[str, str]) -> None:
        inventory, verdict = self._latest.inventory, self._verdicts.get(device.uuid)
        facts = (device.name, device.pci_bus_id, inventory.driver_version, inventory.cuda_version)
        made[INFO.name].add_metric((*labels, *facts, device.mig_parent or "", inventory.machine), 1)
        state = _state(device, self._latest)
        for name in STATES:
            made[STATE.name].add_metric((*labels, name), name == state)
        if state == "ok":
            count = sum(process.uuid == device.uuid for process in self._latest.processes)
            made[PROCESSES.name].add_metric(labels, count)
        # A verdict on a silent GPU is of readings that are no longer current.
        findings: tuple[Verdict | OtherFinding, ...] = ()
        if verdict is not None and state != "silent":
            findings = (verdict, *verdict.also)
        for found in findings:
            made[DIAGNOSIS.name].add_metric((*labels, found.kind.value, found.severity), 1)
        if (expected := self._predictions.get(device.uuid)) is not None:
            made[PLAN_MEMORY.name].add_metric(labels, expected.memory_bytes)
            if expected.power_watts is not None:
                made[PLAN_POWER.name].add_metric(labels, expected.power_watts)


def _card_labels(device: Device, latest: Latest) -> tuple[str, str]:
    parents = (card.index for card in latest.inventory.devices if card.uuid == device.mig_parent)
    parent = None if device.mig_parent is None else next(parents, None)
    return (str(device.index) if parent is None else f"{parent}:{device.index}"), device.uuid


def _state(device: Device, latest: Latest) -> str:
    if device.state != "running":
        return device.state
    return "silent" if latest.reading(device.uuid, "utilization_fraction").cause in _SILENT_CAUSES else "ok"


def _add_family(families: dict[str, _Family], series: ExposedSeries, labels: tuple[str, ...]) -> _Family:
    """Return the family of a series, which several series may share."""
    if series.name not in families:
        names = (*labels, *(name for name, _value in series.labels))
        families[series.name] = _family(series.name, series.about, series.kind, names)
    return families[series.name]


def _family(name: str, about: str, kind: str, labels: tuple[str, ...]) -> _Family:
    # The class appends `_total` to the name of a counter's samples.
    if kind == "counter":
        return CounterMetricFamily(name.removesuffix("_total"), about, labels=labels)
    return GaugeMetricFamily(name, about, labels=labels)


def _add_reading(family: _Family, series: ExposedSeries, labels: tuple[str, ...], reading: Reading) -> None:
    if reading.value is not None and not reading.is_implausible:
        values = (*labels, *(value for _name, value in series.labels))
        family.add_metric(values, series.to_exposed(reading.value))


LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_LISTEN: Final = re.compile(r"(?:(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%\w]+\]):)?(?P<port>\d{1,5})", re.ASCII)
_REQUEST_SECONDS: Final = 10.0
_PATHS: Final = ("/", "/metrics")
_WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


class ListenAddress(NamedTuple):
    """Address and port to serve at; port 0 stands for a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "ListenAddress":
        """Return the address in `[HOST:]PORT`; without a host, that of this machine only.

        Raises:
            SpecError: If it is not such an address.
        """
        match = _LISTEN.fullmatch(text)
        if match is None or int(match["port"]) > 65_535:
            raise SpecError(
                "--serve",
                f"{text!r} is not [HOST:]PORT",
                "Write it as 9836, or as 0.0.0.0:9836 to serve other machines, too.",
            )
        return cls((match["host"] or LOOPBACK[0]).strip("[]"), int(match["port"]))

    @property
    def is_public(self) -> bool:
        """Return whether other machines can connect."""
        return self.host not in LOOPBACK


class _Server(ThreadingWSGIServer):
    """Server that encrypts a connection in the thread that answers it, so that a slow client keeps no other waiting."""

    daemon_threads = True
    context: ssl.SSLContext | None = None

    def server_bind(self) -> None:
        # The ancestor looks up this machine's name, which may take seconds without a network.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        connection, client = super().get_request()
        connection.settimeout(_REQUEST_SECONDS)
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the ancestor
        """Ignore clients that disconnect or do not speak TLS."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, ANN401  # as in the ancestor
        """Keep the terminal free of requests."""


class MetricsServer:
    """Serves the exposition at `address` until closed; with `token`, only to whoever sends it as a bearer token.

    Raises:
        SpecError: If the certificate or its key cannot be read, or the address cannot be served at.
    """

    def __init__(
        self,
        exposition: Exposition,
        address: ListenAddress,
        token: str = "",
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        app = _guarded(make_wsgi_app(exposition.registry), token)

        class Server(_Server):
            address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            context = None if certificate is None else _tls_context(certificate, key)

        try:
            self._server = make_server(address.host, address.port, app, Server, _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SpecError(
                "serve", f"cannot serve at {address.host}:{address.port}: {reason}", "Choose another address or port."
            ) from error
        host = f"[{address.host}]" if ":" in address.host else address.host
        self.url = f"{'http' if certificate is None else 'https'}://{host}:{self._server.server_port}/metrics"
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        files = certificate if key is None else f"{certificate} and {key}"
        raise SpecError("certificate", f"{files}: {error}", "Name a certificate and its key in PEM format.") from error
    return context


def _guarded(app: _WsgiApp, token: str) -> _WsgiApp:
    """Return `app` for its paths, and for whoever has the token."""
    expected = f"Bearer {token}".encode()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401  # WSGI's callable
        given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
        if token and not hmac.compare_digest(given, expected):
            start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
            return [b"A bearer token is needed.\n"]
        if environ.get("PATH_INFO") not in _PATHS:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"The metrics are at /metrics.\n"]
        return app(environ, start_response)

    return answer


def write_textfile(exposition: Exposition, path: Path) -> None:
    """Replace the file at `path`, for node_exporter's textfile collector, by the current exposition in one step.

    Raises:
        OSError: If the file cannot be written.
    """
    write_atomically(path, generate_latest(exposition.registry))
