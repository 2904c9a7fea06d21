"""The child: takes a request from its parent, traces, and answers; the only process that runs a person's code."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from planner.trace.child.messages import Message
from planner.trace.consent import own_files
from planner.trace.recording import Recording
from planner.trace.request import TraceRequest
from planner.trace.worker.channel import Channel
from planner.trace.worker.failures import explain

Record = Callable[[TraceRequest, Callable[[str, int, int, int], None]], Recording]


def main(load_record: Callable[[], Record]) -> NoReturn:
    """Answer one request with what the loaded function records, and end."""
    start_seconds, seconds, memory_bytes = map(float, sys.argv[1:])
    channel = Channel(seconds)
    # A module that reads the command line sees none.
    del sys.argv[1:]
    _limit_memory(int(memory_bytes))
    channel.allow(start_seconds)
    channel.send(Message(progress=("start", 0, 0, 0)).line)
    channel.send(_answer(channel, load_record))
    # Threads that the person's code left running would hold up an ordinary end.
    os._exit(0)


def _answer(channel: Channel, load_record: Callable[[], Record]) -> bytes:
    """Return the last line that this process says."""
    files: tuple[Path, ...] = ()
    try:
        request = TraceRequest.model_validate_json(channel.read_request())
        files = own_files(request)
        return Message(result=load_record()(request, channel.progress)).line
    except BaseException as error:  # noqa: BLE001  # also sys.exit and KeyboardInterrupt of the person's code
        _limit_memory(None)
        return Message(failure=explain(error, channel.stage, files)).line


def _limit_memory(memory_bytes: int | None) -> None:
    """Let this process take so much memory; Windows has no such limit, there the parent alone watches."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = most if memory_bytes is None else memory_bytes
    soft = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _load_record() -> Record:
    from planner.trace.worker.job import record

    # It logs in full what a kernel raises, which is told anyway.
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    return record


if __name__ == "__main__":
    main(_load_record)
