"""Recorded traffic: the layouts that are read, and what is refused."""

import json

import pytest
from each_record import for_each

from planner.errors import TrafficFileError
from planner.serving.traffic import CommonPrefix
from planner.serving.traffic_files import load_traffic, parse_traffic

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n"
)
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n1.5,396,109\n"
MOONCAKE = [
    {"timestamp": 0, "input_length": 2_000, "output_length": 5, "hash_ids": [0, 1, 2, 3]},
    {"timestamp": 3_000, "input_length": 2_500, "output_length": 6, "hash_ids": [0, 1, 2, 7, 8]},
    {"timestamp": 6_000, "input_length": 600, "output_length": 7, "hash_ids": [0, 9]},
]


def lines(values):
    return "\n".join(json.dumps(value) for value in values).encode()


def test_azures_layout_has_dates():
    found = parse_traffic(AZURE.encode(), "azure.csv")
    assert found.arrival_seconds == pytest.approx((0.0, 0.052), abs=1e-6)
    assert (found.input_tokens, found.output_tokens) == ((4808, 3180), (10, 8))
    assert found.source == "azure.csv"


def test_burstgpts_and_plain_layouts_have_seconds():
    assert parse_traffic(BURST.encode(), "b.csv").input_tokens == (472,)
    assert parse_traffic(VIDUR.encode(), "v.csv").arrival_seconds == (0.0, 1.5)
    runs = [
        {"queued_ts": 7.5, "input_toks": 5, "output_toks": 2},
        {"queued_ts": 7.0, "input_toks": 6, "output_toks": 3},
    ]
    assert parse_traffic(lines(runs), "run.jsonl").input_tokens == (6, 5)
    assert parse_traffic(json.dumps(runs).encode(), "run.json").input_tokens == (6, 5)
    assert parse_traffic(b"timestamp_ms,input_tokens,output_tokens\n500,1,1\n1500,1,1\n", "m.csv").arrival_seconds == (
        0,
        1,
    )


def test_mooncakes_layout_has_blocks_that_prompts_share():
    found = parse_traffic(lines(MOONCAKE), "mooncake.jsonl")
    assert found.arrival_seconds == (0.0, 3.0, 6.0)
    first = CommonPrefix(0, 512)
    assert found.beginnings == ((first, CommonPrefix(2, 1_536)),) * 2 + ((first,),)


def test_requests_that_failed_are_left_out():
    assert parse_traffic(BURST.encode() + b"6,ChatGPT,400,0,400,Conversation log\n", "b.csv").input_tokens == (472,)


def test_a_file_is_read(tmp_path):
    place = tmp_path / "requests.csv"
    place.write_text(VIDUR)
    assert load_traffic(place) == load_traffic(str(place))
    with pytest.raises(TrafficFileError, match="cannot be read"):
        load_traffic(tmp_path / "none.csv")


def test_empty_lines_are_no_requests():
    data = lines([MOONCAKE[0]]) + b"\n  \n" + lines([MOONCAKE[1]])
    assert parse_traffic(data, "mooncake.jsonl") == parse_traffic(lines(MOONCAKE[:2]), "mooncake.jsonl")


@for_each(
    "case",
    (
        (b"", "no request"),
        (b"a,b\n1,2\n", "line 2 has no arrival"),
        (b"timestamp,output_tokens\n1,2\n", "has no number of input tokens"),
        (b"timestamp,input_tokens\n1,2\n", "has no number of output tokens"),
        (VIDUR.encode() + b"soon,1,1\n", "line 4: arrived_at is not a time"),
        (VIDUR.encode() + b"1e40,1,1\n", "line 4: arrived_at is not a time"),
        (VIDUR.encode() + b"2,many,1\n", "line 4: num_prefill_tokens is not a number of tokens"),
        (VIDUR.encode() + b"2,1.5,1\n", "line 4: num_prefill_tokens is not a number of tokens"),
        (VIDUR.encode() + b"2,-1,1\n", "is not a number of tokens"),
        (VIDUR.encode() + b"2,1\n", "line 4: num_decode_tokens is not a number of tokens"),
        (b'{"timestamp": 1,', "line 1 is not JSON"),
        (b"[1]", "entry 1 is not a request"),
        (lines([{**MOONCAKE[0], "hash_ids": "all"}]), "hash_ids are not whole numbers"),
        (lines([{**MOONCAKE[0], "hash_ids": [0.5]}]), "hash_ids are not whole numbers"),
        (b'a,"' + b"x" * 200_000 + b'"\n1,2\n', "is not CSV"),
    ),
)
def test_what_is_no_trace_is_refused_with_its_line(case):
    data, words = case
    with pytest.raises(TrafficFileError, match=words):
        parse_traffic(data, "bad")


def test_too_many_requests_are_refused(monkeypatch):
    monkeypatch.setattr("planner.serving.traffic_files._MOST_REQUESTS", 1)
    with pytest.raises(TrafficFileError, match="more than 1 requests"):
        parse_traffic(VIDUR.encode(), "v.csv")
