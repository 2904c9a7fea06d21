"""A server of price lists on this machine that can misbehave in every way, spoken to over real HTTP."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = bytes | Callable[[BaseHTTPRequestHandler], None]


class PriceServer:
    """Answers with `files`, keyed by path; a callable answers in its own way. `asked` are the paths, in order."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.files: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        self.server = ThreadingHTTPServer((self.host, 0), self._handler())
        self.base = f"http://{self.host}:{self.server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        prices = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                prices.asked.append(self.path)
                prices.headers.append(dict(self.headers))
                found = prices.files.get(self.path)
                self.close_connection = True
                try:
                    if callable(found):
                        found(self)
                    else:
                        send(self, found or b"", 200 if found is not None else 404)
                except ConnectionError:
                    pass  # the reader has had enough

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def running() -> Iterator[PriceServer]:
    """Serve until the block is left."""
    served = PriceServer()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.over.set()
        served.server.shutdown()
        thread.join()
        served.server.server_close()


def send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200, **headers: str) -> None:
    """Send a whole answer; underscores in the names of `headers` become hyphens."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
