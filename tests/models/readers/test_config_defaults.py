"""The catalog's class defaults: each record is of a class that is read, and says what its fields are."""

from planner.models.readers.config_defaults import ConfigDefaults, config_defaults
from planner.models.readers.registry import find_reader
from planner.models.readers.vision.towers import TOWERS
from planner.paths import catalog_dir
from planner.records import read_records

FOLDER = catalog_dir() / "config-defaults"
RECORDS = read_records(FOLDER, ConfigDefaults)


def test_every_record_is_of_classes_that_are_read() -> None:
    names = [name for record in RECORDS for name in (record.id, *record.aliases)]
    assert len(set(names)) == len(names)
    # Only CLIP's text tower is published alone.
    assert [name for name in names if find_reader(name) is None and name not in TOWERS] == ["siglip_text_model"]


def test_every_class_has_a_source_of_its_own() -> None:
    for record in RECORDS:
        assert len(record.sources) == 1 + len(record.aliases)


def test_an_alias_has_the_same_defaults_and_other_classes_have_none() -> None:
    assert config_defaults("smolvlm_vision") == config_defaults("idefics3_vision") != {}
    assert config_defaults("bert") == {}
