"""Event files: checksums, records, and what is left of a file that was cut."""

import math
from io import BytesIO

from event_reader import checksum, events, fields, records, single

from planner.present.trackers.event_file import EventFile, EventText, crc32c, scalar_tag


def test_the_checksum_is_that_of_the_standard():
    # The examples of RFC 3720, appendix B.4, and the usual check value.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0
    assert all(crc32c(bytes(range(length))) == checksum(bytes(range(length))) for length in range(9))


def test_numbers_and_texts_are_read_back_with_their_times():
    stream = BytesIO()
    file = EventFile(stream, 1_700_000_000.5)
    tags = [scalar_tag(f"gpu/0/{'x' * length}") for length in range(40)]
    values = [math.exp(place) * (-1) ** place for place in range(40)]
    file.add_scalars(1_700_000_001.123, 300, zip(tags, values, strict=True))
    file.add_text(1_700_000_002.0, 0, EventText("events", "Xid 79 – “lost”\udcff"))
    file.flush()
    found = events(stream.getvalue())
    wanted = {f"gpu/0/{'x' * length}": single(value) for length, value in enumerate(values)}
    assert found[0] == (1_700_000_001.123, 300, wanted)
    assert found[1] == (1_700_000_002.0, 0, {"events": "Xid 79 – “lost”\\udcff"})


def test_events_are_in_the_file_before_it_is_closed(tmp_path):
    with (tmp_path / "events").open("wb") as stream:
        file = EventFile(stream, 0.0)
        file.add_scalars(1.0, 1, [(scalar_tag("a"), 2.0)])
        file.flush()
        assert events((tmp_path / "events").read_bytes()) == [(1.0, 1, {"a": 2.0})]


def test_what_a_float_cannot_hold_is_left_out():
    stream = BytesIO()
    odd = [1.0, 1e39, -1e39, math.inf, math.nan, 2.0]
    EventFile(stream, 0.0).add_scalars(1.0, 1, [(scalar_tag(str(place)), value) for place, value in enumerate(odd)])
    assert events(stream.getvalue()) == [(1.0, 1, {"0": 1.0, "5": 2.0})]
    EventFile(stream, 0.0).add_scalars(1.0, 1, [])
    assert fields(fields(records(stream.getvalue())[-1])[5][0]) == {}


def test_a_file_that_was_cut_anywhere_keeps_the_whole_events_before():
    stream = BytesIO()
    file, tag = EventFile(stream, 5.0), scalar_tag("gpu/0/power_W")
    ends = [len(stream.getvalue())]
    for second in range(3):
        file.add_scalars(5.0 + second, 10 * second, [(tag, float(second))])
        ends.append(len(stream.getvalue()))
    data = stream.getvalue()
    # In a length, its checksum, an event and its checksum.
    for cut in range(ends[0], len(data) + 1):
        assert len(events(data[:cut])) == sum(end <= cut for end in ends) - 1
