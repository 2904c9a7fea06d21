"""Catalog files: read in order, and every problem named by file, record and field."""

import json

import pytest
from pydantic import Field

from planner.base import Spec
from planner.errors import CatalogError
from planner.records import RecordFiles, read_records, records_mentioning


class Size(Spec):
    bytes: int = Field(gt=0)


class Thing(Spec):
    id: str
    sizes: tuple[Size, ...] = ()


@pytest.fixture
def refused(tmp_path):
    """Return a check that a file of that content is refused, which gives the error and the file."""

    def check(content):
        path = tmp_path / "things.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        with pytest.raises(CatalogError) as caught:
            read_records(tmp_path, Thing, [path])
        assert caught.value.path == path
        return caught.value

    return check


def test_records_come_in_the_order_of_the_files(tmp_path):
    first, second = tmp_path / "z.json", tmp_path / "a.json"
    first.write_text('[{"id": "c"}, {"id": "a"}]', encoding="utf-8")
    second.write_text('[{"id": "b", "sizes": [{"bytes": 1}]}]', encoding="utf-8")
    records = read_records(tmp_path, Thing, [first, second])
    assert records == (Thing(id="c"), Thing(id="a"), Thing(id="b", sizes=(Size(bytes=1),)))


def test_a_field_that_does_not_validate_is_named_with_its_record(refused):
    error = refused([{"id": "a"}, {"id": "b", "sizes": [{"bytes": 1}, {"bytes": 0}]}])
    assert (error.record, error.field) == ("b", "sizes.1.bytes")
    assert "must be more than 0, not 0" in error.message


def test_an_unknown_field_brings_its_hint(refused):
    error = refused([{"id": "a", "colour": "red"}])
    assert (error.record, error.field, error.hint) == ("a", "colour", "Check its spelling.")


@pytest.mark.parametrize(("record", "field"), [({"sizes": []}, "id"), ("a", ""), ({"id": None}, "id")])
def test_a_record_without_an_id_is_named_by_its_place(refused, record, field):
    error = refused([{"id": "a"}, record])
    assert (error.record, error.field) == ("record 2", field)


@pytest.mark.parametrize("content", [{"id": "a"}, "a", None, b"", b"[{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_list_is_told_what_it_should_be(refused, content):
    error = refused(content)
    assert (error.record, error.field) == ("", "")
    assert "JSON list" in error.hint


def test_an_id_may_not_come_twice_even_in_two_files(tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    for path in (first, second):
        path.write_text('[{"id": "a"}]', encoding="utf-8")
    with pytest.raises(CatalogError, match="another record has this id") as caught:
        read_records(tmp_path, Thing, [first, second])
    assert (caught.value.path, caught.value.record, caught.value.field) == (second, "a", "id")


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(CatalogError, match=r"cannot be read|is a folder, not a catalog file") as caught:
        read_records(tmp_path, Thing, [tmp_path / name])
    assert caught.value.hint
    assert caught.value.path == tmp_path / name


def test_a_record_in_a_file_beyond_the_limits_is_named_by_its_place(refused):
    error = refused([{"id": "a", "sizes": [{"bytes": 0}], "more": 10**30}])
    assert (error.record, error.field) == ("record 1", "sizes.0.bytes")
    assert error.hint


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(CatalogError, match="no JSON files") as caught:
        read_records(tmp_path, Thing, [])
    assert caught.value.path == tmp_path
    assert caught.value.hint


def test_a_file_is_parsed_when_one_of_its_records_may_be_meant(tmp_path):
    (tmp_path / "broken.json").write_text('[{"id": "first"}, {"id": "B-2", "colour": "red"}]', encoding="utf-8")
    (tmp_path / "sound.json").write_text('[{"id": "C-3"}, {"id": "d"}]', encoding="utf-8")
    files = RecordFiles(tmp_path, Thing)
    assert files.mentioning("c-3") == (Thing(id="C-3"), Thing(id="d"))
    assert files.mentioning("C", "3", "é") == (Thing(id="C-3"), Thing(id="d"))
    assert files.mentioning("c-4") == ()
    for ask in (lambda: files.mentioning("b-2"), lambda: list(files), lambda: len(files)):
        with pytest.raises(CatalogError, match="colour") as caught:
            ask()
        assert (caught.value.path, caught.value.record) == (tmp_path / "broken.json", "B-2")


def test_records_in_files_are_a_sequence_of_all(tmp_path):
    (tmp_path / "things.json").write_text('[{"id": "a"}, {"id": "b"}]', encoding="utf-8")
    files = RecordFiles(tmp_path, Thing)
    assert (list(files), len(files), files[1]) == ([Thing(id="a"), Thing(id="b")], 2, Thing(id="b"))
    assert records_mentioning(files, "nothing") == ()
    assert records_mentioning(files[:], "nothing") == files[:]
