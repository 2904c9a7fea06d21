"""Refusal of downloads, with the name of what was wanted."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final

from planner.errors import TraceError
from planner.trace.worker.cuda.dispatch import patched_attributes

_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1", "", None)
_WANTED_NAMES: Final = ("repo_id", "pretrained_model_name_or_path", "path_or_repo_id", "path_or_repo", "url", "fullurl")
"""Names of variables in which urllib, requests, httpx, torch.hub, torchvision and Hugging Face keep what they load."""

_OFFLINE_ERRORS: Final = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
"""Errors of huggingface_hub when its offline mode, which a trace sets, lacks a file."""
DOWNLOAD_HINT: Final = (
    "A trace has no network. Let the script run once until the file is on this machine, or let it build the model from "
    "a configuration and use random data of the same shape."
)


class DownloadRefusedError(OSError):
    """Raised for a connection to another machine."""


@contextmanager
def refused_downloads() -> Iterator[None]:
    """Refuse connections to other machines, and name what a script wanted to load if it ends for that."""
    original_lookup, original_connect = socket.getaddrinfo, socket.socket.connect

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in _LOCAL_HOSTS:
            raise DownloadRefusedError(f"{host}: a trace has no network")
        return original_lookup(host, *args, **kwargs)

    def connect(connection: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL_HOSTS:
            raise DownloadRefusedError(f"{address[0]}: a trace has no network")
        original_connect(connection, address)

    with patched_attributes(socket, getaddrinfo=lookup), patched_attributes(socket.socket, connect=connect):
        try:
            yield
        except Exception as error:
            wanted = _wanted_download(error)
            if wanted is None or isinstance(error, TraceError):
                raise
            refusal = TraceError("load", f"the script wants to download {wanted}", DOWNLOAD_HINT)
            # With the line of the script that wants it.
            raise refusal.with_traceback(error.__traceback__) from None


def _wanted_download(error: BaseException) -> str | None:
    """Return what could not be loaded, if `error` or one of its causes is a refused download."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    refused = [one for one in chain if isinstance(one, DownloadRefusedError) or type(one).__name__ in _OFFLINE_ERRORS]
    if not refused:
        return None
    frames = [frame for one in chain for frame in _frames(one.__traceback__)]
    names = (frame.f_locals.get(name) for name in _WANTED_NAMES for frame in frames)
    found = next((str(value) for value in names if isinstance(value, str) or hasattr(value, "scheme")), None)
    return found or str(refused[-1]).partition(":")[0]


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
