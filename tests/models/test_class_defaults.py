"""The catalog's class defaults: each record is of a class that is read, and says what its fields are."""

from planner.models.readers.class_defaults import ClassDefaults, class_defaults
from planner.models.readers.registry import reader_of
from planner.models.readers.vision.towers import TOWERS
from planner.paths import catalog_dir
from planner.records import read_records

FOLDER = catalog_dir() / "class-defaults"
RECORDS = read_records(FOLDER, ClassDefaults)


def test_every_record_is_of_classes_that_are_read() -> None:
    names = [name for record in RECORDS for name in (record.id, *record.aliases)]
    assert len(set(names)) == len(names)
    # Only CLIP's text tower is published alone.
    assert [name for name in names if reader_of(name) is None and name not in TOWERS] == ["siglip_text_model"]


def test_every_class_has_a_source_of_its_own() -> None:
    for record in RECORDS:
        assert len(record.sources) == 1 + len(record.aliases)


def test_an_alias_has_the_same_defaults_and_other_classes_have_none() -> None:
    assert class_defaults("smolvlm_vision") == class_defaults("idefics3_vision") != {}
    assert class_defaults("bert") == {}
