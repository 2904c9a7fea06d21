"""A reader of event files that shares nothing with the writer: records by their checksums, events by their fields."""

import struct


def checksum(data: bytes) -> int:
    """Return the CRC-32C of `data`, bit by bit as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = checksum(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def records(data: bytes) -> list[bytes]:
    """Return the whole records at the beginning of `data`; a wrong checksum is an error."""
    found, at = [], 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8) == (masked(data[at : at + 8]),)
        if at + 16 + length > len(data):
            break
        event = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(event),)
        found.append(event)
        at += 16 + length
    return found


def fields(data: bytes) -> dict[int, list]:
    """Return the values of a message of protocol buffers by the numbers of its fields."""
    found: dict[int, list] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            assert kind == 2
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return number, at


def events(data: bytes) -> list[tuple[float, int, dict[str, float | str]]]:
    """Return time, step and the numbers and texts by tag of each event after the first, which names the format."""
    first, *others = map(fields, records(data))
    assert first[3] == [b"brain.Event:2"]
    return [(event[1][0], event[2][0], dict(_value(value) for value in fields(event[5][0])[1])) for event in others]


def _value(data: bytes) -> tuple[str, float | str]:
    value = fields(data)
    tag = value[1][0].decode()
    if 2 in value:
        return tag, value[2][0]
    assert fields(fields(value[9][0])[1][0]) == {1: [b"text"]}
    tensor = fields(value[8][0])
    assert (tensor[1], fields(fields(tensor[2][0])[2][0])) == ([7], {1: [1]})
    return tag, tensor[8][0].decode()


def single(value: float) -> float:
    """Return a number as a 32-bit float keeps it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]
