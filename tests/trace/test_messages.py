"""What a child says is read, and nothing of it is taken on trust."""

from io import BytesIO

import pytest

from planner.trace.messages import TraceFailure, TraceProgress, WorkerMessage, read_messages


def hear(*lines, longest=1000):
    heard = []
    return read_messages(BytesIO(b"".join(lines)), heard.append, longest), heard


def said(**what):
    return WorkerMessage(**what).line


def test_progress_is_passed_on_until_the_final_message():
    failure = TraceFailure(stage="build", reason="it is no module")
    answer, heard = hear(
        said(progress=("import", 0, 0, 0)), said(progress=("backward", 2, 3, 4567)), said(failure=failure), b"junk\n"
    )
    assert heard == [
        TraceProgress("import", 0, 0, 0, "importing the module"),
        TraceProgress("backward", 2, 3, 4567, "step 3 of 3: backward · 4,567 allocations and frees"),
    ]
    assert answer.failure == failure
    assert answer.is_complete


@pytest.mark.parametrize("lines", [(), (said(progress=("import", 0, 0, 0)),), (b'{"progress":["imp',)])
def test_a_worker_that_exits_early_has_an_empty_outcome(lines):
    answer, _ = hear(*lines)
    assert not answer.is_complete
    assert not answer.protocol_error
    assert not answer.report


@pytest.mark.parametrize(
    "line",
    [
        b"junk\n",
        b"\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"{}\n",
        b'{"progress": ["forward", 1, 2, -1]}\n',
        b'{"progress": ["forward", 1, 2]}\n',
        b'{"progress": ["%s", 1, 2, 3]}\n' % (b"x" * 41),
        b'{"failure": {"stage": "build"}}\n',
        b'{"failure": {"stage": "build", "reason": "x"}, "progress": ["build", 0, 0, 0]}\n',
        b'{"result": {}}\n',
        b'{"orders": "rm"}\n',
    ],
)
def test_an_invalid_message_is_a_protocol_error(line):
    answer, heard = hear(line)
    assert answer.protocol_error
    assert not answer.is_complete
    assert heard == []


def test_an_endless_line_is_not_read_completely():
    answer, _ = hear(b"x" * 5000, longest=100)
    assert answer.protocol_error == "a line of more than 100 bytes"


@pytest.mark.parametrize("before", [b"", b'{"progress":["forw'])
@pytest.mark.parametrize("report", [b"Fatal Python error: Segmentation fault\n\nmore\n", b"Timeout (0:00:02)!\nmore\n"])
def test_a_crash_report_ends_the_messages(before, report):
    answer, _ = hear(said(progress=("build", 0, 0, 0)), before, report)
    assert answer.report == report.decode()
    assert not answer.protocol_error
