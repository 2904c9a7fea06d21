"""Archives from the network: hostile, broken, and as they should be."""

import io
import struct
import zipfile

import pytest

from planner.cost.refresh.gpuhunt import unpack
from planner.errors import PriceError


def packed(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_the_one_file_comes_out():
    assert unpack(packed(aws=b"a,b\n1,2\n"), "aws", "AWS") == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"no zip", b"PK\x03\x04 cut", packed(aws=b"x" * 1000)[:-30]],
    ids=["empty", "no zip", "start alone", "end cut off"],
)
def test_what_is_no_archive_is_refused(content):
    with pytest.raises(PriceError, match="AWS: its archive cannot be read"):
        unpack(content, "aws", "AWS")


def test_other_files_are_refused():
    with pytest.raises(PriceError, match="contains 2 files instead of aws"):
        unpack(packed(aws=b"x", more=b"y"), "aws", "AWS")
    with pytest.raises(PriceError, match=r"contains \.\./aws instead of aws"):
        unpack(packed(**{"../aws": b"x"}), "aws", "AWS")
    with pytest.raises(PriceError, match="holds 0 files"):
        unpack(packed(), "aws", "AWS")


def test_a_bomb_is_not_unpacked():
    bomb = packed(aws=b"0" * 5_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(PriceError, match="unpacks to more than 1,000,000 bytes"):
        unpack(bomb, "aws", "AWS", 1_000_000)


def test_a_bomb_that_lies_about_its_size_is_not_unpacked_either():
    bomb = bytearray(packed(aws=b"0" * 5_000_000))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = bomb.index(signature) + offset
        bomb[at : at + 4] = struct.pack("<I", 10)
    with pytest.raises(PriceError, match="its archive"):
        unpack(bytes(bomb), "aws", "AWS", 1_000_000)


def test_a_damaged_file_is_refused():
    damaged = bytearray(packed(aws=bytes(range(256)) * 40))
    damaged[60] ^= 0xFF
    with pytest.raises(PriceError, match="cannot be read"):
        unpack(bytes(damaged), "aws", "AWS")


def test_a_file_behind_a_password_is_refused():
    locked = bytearray(packed(aws=b"x"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1
    with pytest.raises(PriceError, match="cannot be read"):
        unpack(bytes(locked), "aws", "AWS")
