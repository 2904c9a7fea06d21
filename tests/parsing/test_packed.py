"""Zip and gzip files are unpacked up to a size, or refused."""

import gzip
import io
import struct
import zipfile

import pytest
from refusals import refusal

from planner.parsing.packed import unpack_gzip, unpack_zip


def packed(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_the_one_file_of_an_archive_comes_out():
    assert unpack_zip(packed(aws=b"a,b\n1,2\n"), "aws", 100) == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"no zip", b"PK\x03\x04 cut", packed(aws=b"x" * 1000)[:-30]],
    ids=["empty", "no zip", "start alone", "end cut off"],
)
def test_what_is_no_archive_is_refused(content):
    assert refusal(unpack_zip, content, "aws", 10_000).startswith("cannot be unpacked (")


def test_other_files_in_an_archive_are_refused():
    assert refusal(unpack_zip, packed(aws=b"x", more=b"y"), "aws", 9) == "contains 2 files instead of aws"
    assert refusal(unpack_zip, packed(**{"../aws": b"x"}), "aws", 9) == "contains ../aws instead of aws"
    assert refusal(unpack_zip, packed(), "aws", 9) == "contains 0 files instead of aws"


def test_a_bomb_is_not_unpacked():
    bomb = packed(aws=b"0" * 5_000_000)
    assert len(bomb) < 10_000
    assert refusal(unpack_zip, bomb, "aws", 1_000_000) == "unpacks to more than 1,000,000 bytes"
    assert refusal(unpack_gzip, gzip.compress(bytes(5_000_000)), 999) == "unpacks to more than 999 bytes"


def test_a_bomb_that_lies_about_its_size_is_not_unpacked_either():
    bomb = bytearray(packed(aws=b"0" * 5_000_000))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = bomb.index(signature) + offset
        bomb[at : at + 4] = struct.pack("<I", 10)
    refusal(unpack_zip, bytes(bomb), "aws", 1_000_000)


def test_a_damaged_file_is_refused():
    damaged = bytearray(packed(aws=bytes(range(256)) * 40))
    damaged[60] ^= 0xFF
    assert refusal(unpack_zip, bytes(damaged), "aws", 100_000).startswith("cannot be unpacked")
    assert refusal(unpack_gzip, gzip.compress(b"text")[:-5], 100).startswith("cannot be unpacked")


def test_a_file_behind_a_password_is_refused():
    locked = bytearray(packed(aws=b"x"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1
    assert refusal(unpack_zip, bytes(locked), "aws", 100).startswith("cannot be unpacked")


def test_what_a_gzip_file_holds_comes_out():
    assert unpack_gzip(gzip.compress(b"text"), 4) == b"text"
