"""Reader of models from the Hugging Face Hub, which downloads the configuration and only the headers of the weights.

Files are read in ranges, within limits of time and size. Endpoint, token, proxies and certificates are those of
`huggingface_hub`, which people have set up for it; nothing else of it is used, so that no request is made but those
here. Redirects lead to the Hub's own domains only, over HTTPS, and the token to no other host. Nothing is written to
disk.
"""

import importlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, Protocol
from urllib.parse import urljoin, urlsplit

from planner.errors import MissingPackageError, ModelFileError, NetworkError
from planner.installation import extra_command
from planner.models.architecture import Architecture
from planner.models.readers.config_json import MAX_FILE_BYTES, parse_config, read_config
from planner.models.readers.diffusers.pipeline import MODEL_INDEX, WEIGHT_NAMES, read_pipeline_files
from planner.models.readers.gguf.header import read_gguf
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.model_file import read_model_file
from planner.models.readers.safetensors import (
    INDEX,
    MAX_INDEX_BYTES,
    SINGLE,
    Checkpoint,
    FileTensor,
    combine_parts,
    read_header,
    read_index,
)
from planner.models.readers.sources import check_span, truncated_file_error
from planner.models.readers.stored import with_stored_sizes
from planner.network import ANSWER_SECONDS, answer_within, connection_failure
from planner.units import MIB

TIME_LIMIT_S: Final = 60.0
_PIECE_BYTES: Final = 65_536
_FIRST_BYTES: Final = 1 * MIB
_FOUND: Final = (200, 206)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MOST_REDIRECTS: Final = 3
_SCHEMES: Final = ("https",)
_HUB_DOMAINS: Final = ("huggingface.co", "hf.co")
"""Domains of the Hub and of the storage that it redirects to, such as `cdn-lfs.hf.co` and `cas-bridge.xethub.hf.co`."""
_MISSING: Final = 404
_REFUSED: Final = (401, 403)
_OFFLINE_HINT: Final = "Without a network, choose the config.json in the folder of a model that was downloaded."

ShouldStop = Callable[[], bool]


class Repository(NamedTuple):
    """A model's repository on the Hub, at one revision."""

    name: str
    revision: str | None = None

    @property
    def title(self) -> str:
        """Return the name as users write it: `hf:owner/name@revision`."""
        return f"hf:{self.name}" if self.revision is None else f"hf:{self.name}@{self.revision}"


class HubError(ModelFileError):
    """An error response of the Hub; `missing` is true if the file does not exist."""

    def __init__(self, place: str, reason: str, hint: str, *, missing: bool = False) -> None:
        super().__init__(place, reason, hint)
        self.missing = missing


class _Response(Protocol):
    status_code: int
    headers: Any


class HubSession:
    """A session of requests to the Hub with a time limit and a callback for cancellation.

    Raises:
        MissingPackageError: If `huggingface_hub` is not installed.
    """

    def __init__(self, stop: ShouldStop = lambda: False) -> None:
        if find_spec("huggingface_hub") is None:
            reason = "reading from the Hugging Face Hub needs the package huggingface_hub"
            raise MissingPackageError(reason, f"Run: {extra_command('hub')}")
        self._stop = stop
        self._until = time.monotonic() + TIME_LIMIT_S

    def read(self, repository: Repository, file: str, offset: int, count: int) -> tuple[bytes, int, str | None]:
        """Return up to `count` bytes of a file from `offset` on, the file's total size, and its commit.

        Raises:
            HubError: If there is no such model or file, or access is denied.
            NetworkError: If the Hub cannot be reached, does not answer in time, or is switched off.
        """
        from huggingface_hub import constants, hf_hub_url

        if constants.HF_HUB_OFFLINE:
            raise NetworkError("the Hugging Face Hub is switched off by HF_HUB_OFFLINE", _OFFLINE_HINT)
        try:
            url = hf_hub_url(repository.name, file, revision=repository.revision)
        except ValueError as error:
            raise HubError(repository.title, "is not a valid model name", "Write hf:owner/name.") from error
        headers = {
            **_hub_utilities().build_hf_headers(library_name="gpu-planner"),
            "Range": f"bytes={offset}-{offset + count - 1}",
            "Accept-Encoding": "identity",
        }
        with self._request(url, headers) as (response, pieces):
            if response.status_code not in _FOUND:
                _refuse(repository, file, response)
            whole = response.status_code == _FOUND[0]
            data = self._collect(pieces, offset + count if whole else count)
            size = _total_size_bytes(response) or (offset if not whole else 0) + len(data)
            return data[offset:] if whole else data, size, response.headers.get("X-Repo-Commit")

    @contextmanager
    def _request(self, url: str, headers: dict[str, str]) -> Iterator[tuple[_Response, Iterator[bytes]]]:
        """Open a GET request, follow redirects to allowed hosts, and yield the response and the pieces of its body.

        The user's token goes to the host of `url` alone.
        """
        endpoint = url
        for _ in range(_MOST_REDIRECTS + 1):
            with self._open(url, headers) as (response, pieces):
                if response.status_code not in _REDIRECTS:
                    yield response, pieces
                    return
                url = urljoin(url, str(response.headers.get("Location", "")))
            _check_redirect(url, endpoint)
            if urlsplit(url).netloc != urlsplit(endpoint).netloc:
                headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        raise NetworkError("the Hugging Face Hub redirects too often", "Try again later.")

    @contextmanager
    def _open(self, url: str, headers: dict[str, str]) -> Iterator[tuple[_Response, Iterator[bytes]]]:
        """Open one GET request, and yield the response and the pieces of its body."""
        session = _hub_utilities().get_session()
        try:
            if callable(getattr(session, "stream", None)):  # httpx, since huggingface_hub 1.0
                opened = session.stream("GET", url, headers=headers, timeout=ANSWER_SECONDS, follow_redirects=False)
                response = answer_within(ANSWER_SECONDS, opened.__enter__)
                with closing(response):
                    yield response, response.iter_bytes(_PIECE_BYTES)
            else:  # requests
                ask = partial(
                    session.get, url, headers=headers, timeout=ANSWER_SECONDS, stream=True, allow_redirects=False
                )
                with answer_within(ANSWER_SECONDS, ask) as response:
                    yield response, response.iter_content(_PIECE_BYTES)
        except _transport_errors(session) as error:
            raise NetworkError(f"the Hugging Face Hub {connection_failure(error)}", _OFFLINE_HINT) from error

    def _collect(self, pieces: Iterator[bytes], limit: int) -> bytes:
        """Return at most `limit` bytes of a response's body, within the time limit unless cancelled."""
        found = bytearray()
        for piece in pieces:
            if self._stop():
                raise NetworkError("reading from the Hugging Face Hub was cancelled")
            if time.monotonic() > self._until:
                raise NetworkError(f"the Hugging Face Hub took longer than {TIME_LIMIT_S:.0f} seconds", _OFFLINE_HINT)
            found += piece
            if len(found) >= limit:  # a server without support for ranges sends the whole file
                break
        return bytes(found[:limit])


class RemoteFile:
    """A file on the Hub that is read in ranges."""

    def __init__(self, hub: HubSession, repository: Repository, file: str) -> None:
        self._hub, self._repository, self._file = hub, repository, file
        self._first, self._size, self.commit = hub.read(repository, file, 0, _FIRST_BYTES)

    @property
    def file(self) -> str:
        """Return the remote file's name in the repository."""
        return self._file

    @property
    def place(self) -> str:
        """Return the model's and the file's name, for messages."""
        return f"{self._repository.title}: {self._file}"

    @property
    def size(self) -> int:
        """Return the file's size in bytes, as the Hub states it."""
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        """Return exactly `count` bytes of the remote file from `offset` on.

        Raises:
            ModelFileError: If the file has fewer bytes.
            NetworkError: If the Hub cannot be reached any more.
        """
        check_span(self, offset, count)
        if offset + count <= len(self._first):
            return self._first[offset : offset + count]
        found, _, _ = self._hub.read(self._repository, self._file, offset, count)
        if len(found) != count:
            raise truncated_file_error(self, offset, count)
        return found


def _check_redirect(url: str, endpoint: str) -> None:
    """Refuse a redirect to a host that is neither the endpoint nor, over HTTPS, one of the Hub's own domains."""
    to, hub = urlsplit(url), urlsplit(endpoint)
    family = (f"{hub.hostname}", *_HUB_DOMAINS)
    if to.scheme in _SCHEMES and any(to.hostname == name or f"{to.hostname}".endswith(f".{name}") for name in family):
        return
    if (to.scheme, to.netloc) != (hub.scheme, hub.netloc):
        where = f"{to.scheme}://{to.hostname}"[:100]
        raise NetworkError(f"the Hugging Face Hub redirects to {where}, which is not followed", _OFFLINE_HINT)


def _hub_utilities() -> Any:  # noqa: ANN401 - a module whose client was that of requests and is that of httpx
    return importlib.import_module("huggingface_hub.utils")


def _total_size_bytes(response: _Response) -> int | None:
    stated = response.headers.get("Content-Range", "").rpartition("/")[2] or response.headers.get("Content-Length", "")
    return int(stated) if stated.isdecimal() and len(stated) < 20 else None


def _refuse(repository: Repository, file: str, response: _Response) -> NoReturn:
    code = response.headers.get("X-Error-Code", "")
    place = repository.title
    page = f"https://huggingface.co/{repository.name}"
    if code == "GatedRepo":
        hint = f"Accept its conditions at {page}, then log in with: hf auth login"
        raise HubError(place, "is gated: its owner requires that you accept conditions", hint)
    if code == "RevisionNotFound":
        raise HubError(place, "has no such revision", f"The branches and tags are listed at {page}/tree/main.")
    if code == "EntryNotFound" or (code == "" and response.status_code == _MISSING):
        raise HubError(place, f"has no file {file}", f"Its files are listed at {page}/tree/main.", missing=True)
    if response.status_code in (*_REFUSED, _MISSING):
        hint = "Check its name; for a private model log in with: hf auth login"
        raise HubError(place, "there is no such model, or it requires a login", hint)
    raise NetworkError(f"the Hugging Face Hub answered with status {response.status_code}", "Try again later.")


def _transport_errors(session: object) -> tuple[type[BaseException], ...]:
    """Return the connection error classes of an HTTP client: requests derives them from OSError, httpx does not."""
    own = getattr(sys.modules[type(session).__module__.partition(".")[0]], "HTTPError", OSError)
    return (OSError, own)


_NAME: Final = re.compile(
    r"hf:(?P<name>[\w.-]{1,96}(?:/[\w.-]{1,96})?)"
    r"(?:@(?P<revision>[\w./-]{1,100}))?"
    r"(?::(?P<file>[\w./ -]{1,200}\.gguf))?",
    re.ASCII,
)
_CONFIG: Final = "config.json"
_AT_ONCE: Final = 8


def read_hub_model(text: str, stop: ShouldStop = lambda: False) -> Architecture:
    """Read the network `hf:owner/name`, `hf:owner/name@revision` or `hf:owner/name:file.gguf`.

    If the Hub cannot be reached, a copy in `huggingface_hub`'s local cache is read instead.

    Raises:
        ModelFileError: If the name is invalid, or the Hub has no such model or denies access.
        MissingPackageError: If `huggingface_hub` is not installed.
        NetworkError: If the Hub cannot be reached, or `stop` returned true.
    """
    repository, gguf = _parse_hub_name(text)
    try:
        return _read_network(HubSession(stop), repository, gguf)
    except NetworkError:
        kept = None if stop() else _cached_path(repository, gguf or _CONFIG)
        if kept is None:
            raise
        found = read_model_file(kept.parent if kept.name == _CONFIG else kept)
        note = "the Hugging Face Hub was not reached; a copy downloaded earlier is used"
        return found.evolve(reader_notes=(*found.reader_notes, note))


def read_hub_config(text: str) -> Mapping[str, object]:
    """Read the raw configuration of a model on the Hub.

    Raises:
        PlannerError: As `read_hub_model`.
    """
    repository, _ = _parse_hub_name(text)
    return _parse_config_file(_config_file(HubSession(), repository))


def _parse_hub_name(text: str) -> tuple[Repository, str | None]:
    match = _NAME.fullmatch(text)
    if match is None:
        raise ModelFileError(
            text[:200],
            "is not a model name of the Hugging Face Hub",
            "Write hf:owner/name or hf:owner/name@revision.",
        )
    return Repository(match["name"], match["revision"]), match["file"]


def _read_network(hub: HubSession, repository: Repository, gguf: str | None) -> Architecture:
    if gguf is not None:
        file = RemoteFile(hub, repository, gguf)
        return architecture_of_gguf(read_gguf(file), file.place)
    config = _config_or_index(hub, repository)
    if config.file == MODEL_INDEX:
        return _read_pipeline(hub, repository._replace(revision=config.commit or repository.revision), config)
    # All other files are read from the same commit as the configuration.
    fixed = repository._replace(revision=config.commit or repository.revision)
    architecture = read_config(parse_config(config.read(0, config.size), config.place), config.place)
    checkpoint = _read_checkpoint(hub, fixed)
    if checkpoint is None:
        note = "the Hub has no safetensors files of this model: stored sizes follow from its configuration"
        return architecture.evolve(reader_notes=(*architecture.reader_notes, note))
    return with_stored_sizes(architecture, checkpoint.tensors, checkpoint.notes)


def _config_or_index(hub: HubSession, repository: Repository) -> RemoteFile:
    try:
        return _config_file(hub, repository)
    except HubError as error:
        index = _file_if_present(hub, repository, MODEL_INDEX) if error.missing else None
        if index is None:
            raise
        return index


def _read_pipeline(hub: HubSession, repository: Repository, index: RemoteFile) -> Architecture:
    def read_component_config(name: str) -> Mapping[str, object] | None:
        file = _file_if_present(hub, repository, f"{name}/{_CONFIG}")
        return None if file is None else _parse_config_file(file)

    def read_component_tensors(name: str) -> Iterable[FileTensor] | None:
        found = _first_checkpoint(hub, repository, name)
        return None if found is None else found.tensors

    return read_pipeline_files(_parse_config_file(index), read_component_config, read_component_tensors, index.place)


def _first_checkpoint(hub: HubSession, repository: Repository, folder: str) -> Checkpoint | None:
    for name in WEIGHT_NAMES:
        file = _file_if_present(hub, repository, f"{folder}/{name}")
        if file is not None:
            return (
                _read_indexed_checkpoint(hub, repository, file, f"{folder}/")
                if name.endswith(".json")
                else _read_single_checkpoint(file)
            )
    return None


def _parse_config_file(file: RemoteFile) -> Mapping[str, object]:
    _check_size(file, MAX_FILE_BYTES)
    return parse_config(file.read(0, file.size), file.place)


def _check_size(file: RemoteFile, limit: int) -> None:
    if file.size > limit:
        raise ModelFileError(file.place, f"has {file.size:,} bytes", f"At most {limit:,} are read.")


def _config_file(hub: HubSession, repository: Repository) -> RemoteFile:
    try:
        file = RemoteFile(hub, repository, _CONFIG)
    except HubError as error:
        if error.missing:
            error.hint = f"For a GGUF file, write {repository.title}:file.gguf with the file's name. {error.hint}"
        raise
    _check_size(file, MAX_FILE_BYTES)
    return file


def _read_checkpoint(hub: HubSession, repository: Repository) -> Checkpoint | None:
    index = _file_if_present(hub, repository, INDEX)
    if index is not None:
        return _read_indexed_checkpoint(hub, repository, index)
    single = _file_if_present(hub, repository, SINGLE)
    return None if single is None else _read_single_checkpoint(single)


def _read_indexed_checkpoint(
    hub: HubSession, repository: Repository, index: RemoteFile, folder: str = ""
) -> Checkpoint:
    """Return the tensors in the safetensors files that the index `index` in `folder` lists."""
    _check_size(index, MAX_INDEX_BYTES)
    listed = read_index(index.read(0, index.size), index.place)
    files = tuple(dict.fromkeys(listed.values()))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        headers = pool.map(lambda name: read_header(RemoteFile(hub, repository, f"{folder}{name}")), files)
        return combine_parts(listed, zip(files, headers, strict=True), index.place)


def _read_single_checkpoint(file: RemoteFile) -> Checkpoint:
    return Checkpoint(read_header(file))


def _file_if_present(hub: HubSession, repository: Repository, file: str) -> RemoteFile | None:
    try:
        return RemoteFile(hub, repository, file)
    except HubError as error:
        if error.missing:
            return None
        raise


def _cached_path(repository: Repository, file: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository.name, file, revision=repository.revision)
    return Path(found) if isinstance(found, str) else None
