"""Text of Prometheus: samples, labels and limits."""

import pytest

from planner import parsing
from planner.parsing import MetricSample, parse_prometheus
from planner.storage import UnreadableFileError


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("up 1", MetricSample("up", {}, 1.0)),
        ("a:b{} 1.5e3 1712345678901", MetricSample("a:b", {}, 1500.0)),
        ('a{x="1",y="b \\"c\\" \\\\ \\n",} +Inf', None),
        ('a{x="1, y=\\"2\\""} -2', MetricSample("a", {"x": '1, y="2"'}, -2.0)),
        ('a_bucket{le="0.1"} 3 # {trace_id="x"} 0.05', MetricSample("a_bucket", {"le": "0.1"}, 3.0)),
        ('a{x="\\n"} 1', MetricSample("a", {"x": "\n"}, 1.0)),
        ("a NaN", None),
        ("# HELP a text", None),
        ("", None),
    ],
)
def test_a_line_is_a_sample_or_none(line, sample):
    assert parse_prometheus(f"{line}\n") == (() if sample is None else (sample,))


@pytest.mark.parametrize("text", ["<html>", "a", "a b", "a{x=1} 2", 'a{x="1} 2', "a 1 2 3", "a " + "1" * 20_000])
def test_what_is_no_sample_is_refused_with_its_line(text):
    with pytest.raises(UnreadableFileError, match="line 2 is not a sample"):
        parse_prometheus(f"up 1\n{text}\n")


def test_bytes_are_text_in_utf_8():
    assert parse_prometheus("\ufeffup 1\n".encode()) == (MetricSample("up", {}, 1.0),)
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        parse_prometheus(b"\xff\xfe")


def test_there_is_a_limit_to_samples(monkeypatch):
    monkeypatch.setattr(parsing, "_MOST_SAMPLES", 2)
    assert len(parse_prometheus("a 1\nb 2\n")) == 2
    with pytest.raises(UnreadableFileError, match="more than 2 samples"):
        parse_prometheus("a 1\nb 2\nc 3\n")
