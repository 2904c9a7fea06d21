"""A Hugging Face Hub on this machine: files by address, spoken to over real HTTP."""

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants
from made_files import safetensors_bytes, safetensors_header, tensor_bytes

from planner.errors import ModelFileError, NetworkError
from planner.models.readers.hub import read_hub_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """Answers requests for `files`, keyed by `owner/name/file`, as the Hub does; a callable answers in its own way."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[tuple[str, str, str | None, str | None]] = []
        self.ranges = True
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                name, _, rest = self.path.lstrip("/").partition("/resolve/")
                revision, _, file = rest.partition("/")
                hub.asked.append((f"{name}/{file}", revision, self.headers["Range"], self.headers["Authorization"]))
                found = hub.files.get(f"{name}/{file}")
                if callable(found):
                    found(self)
                elif found is None:
                    refuse(self, 404, "EntryNotFound")
                else:
                    hub.send(self, found)

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True  # the reader has had enough

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def send(self, handler: BaseHTTPRequestHandler, content: bytes) -> None:
        """Send the range that was asked for, or everything where `ranges` is off."""
        first, last = handler.headers["Range"].removeprefix("bytes=").split("-")
        part = content[int(first) : int(last) + 1] if self.ranges else content
        handler.send_response(206 if self.ranges else 200)
        handler.send_header("X-Repo-Commit", COMMIT)
        if self.ranges:
            handler.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(part)))
        handler.end_headers()
        handler.wfile.write(part)


def refuse(handler: BaseHTTPRequestHandler, status: int, code: str = "") -> None:
    """Answer with a status, and with the reason that the Hub gives in a header."""
    handler.send_response(status)
    if code:
        handler.send_header("X-Error-Code", code)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def redirect(handler: BaseHTTPRequestHandler, to: str) -> None:
    """Answer with a redirect."""
    handler.send_response(302)
    handler.send_header("Location", to)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    """Run a hub for the length of a test."""
    hub = FakeHub()
    thread = threading.Thread(target=hub.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        thread.join()
        hub.server.server_close()


class RequestsLikeSession:
    """The part of a `requests.Session` that huggingface_hub before 1.0 hands out."""

    def get(
        self, url: str, *, headers: dict[str, str], timeout: float, stream: bool, allow_redirects: bool
    ) -> "RequestsLikeResponse":
        assert stream
        assert not allow_redirects
        request = urllib.request.Request(url, headers=headers)
        return RequestsLikeResponse(urllib.request.urlopen(request, timeout=timeout))


class RequestsLikeResponse:
    """The part of a `requests.Response` that is used."""

    def __init__(self, response) -> None:
        self._response = response
        self.status_code, self.headers = response.status, response.headers

    def iter_content(self, size: int) -> Iterator[bytes]:
        while piece := self._response.read(size):
            yield piece

    def __enter__(self) -> "RequestsLikeResponse":
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()


NAME = "someone/tiny"


def point_to(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what HF_ENDPOINT does, which is read once for a process."""
    template = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def weights(tensors) -> bytes:
    return safetensors_bytes(safetensors_header(tensors), tensor_bytes(tensors))


def refusal(text: str = f"hf:{NAME}", kind: type = ModelFileError) -> ModelFileError | NetworkError:
    with pytest.raises(kind) as caught:
        read_hub_model(text)
    return caught.value
