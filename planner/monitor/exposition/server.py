"""Serving of the exposition over HTTP, by default to this machine only, with TLS and a token if asked."""

import hmac
import re
import socket
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple, Self
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import generate_latest, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from planner.errors import SpecError
from planner.monitor.exposition.collector import Exposition
from planner.storage import write_atomically

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
            SpecError: If it is no such address.
        """
        match = _LISTEN.fullmatch(text)
        if match is None or int(match["port"]) > 65_535:
            raise SpecError("serve", f"{text!r} is not [HOST:]PORT", "Write it as 9836, or as 0.0.0.0:9836 for all.")
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
        """Say nothing of a client that hangs up or speaks no TLS."""


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
