"""The catalog's class defaults: each record is of a class that is read, and says what its fields are."""

import math

import pytest

from planner.errors import ModelFileError
from planner.models.readers.config_fields import ConfigDefaults, ConfigFields, config_defaults
from planner.models.readers.registry import find_reader
from planner.models.readers.vision.towers import TOWERS
from planner.paths import catalog_dir
from planner.records import read_records


def fields(**config: object) -> ConfigFields:
    return ConfigFields(config, "config.json")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "width is missing (or n_embd)"),
        (-3, "from 1 to 10,000,000, got -3"),
        (0, "got 0"),
        (10**7 + 1, "got 10000001"),
        (10**400, "a number of 1329 bits"),
        (12.0, "got 12.0"),
        (math.nan, "got nan"),
        (True, "got True"),
        ("12", "got '12'"),
        ([1, 2], "got a list of 2"),
        ({"a": 1}, "got an object of 1"),
        ("x" * 100, "…"),
    ],
)
def test_a_wrong_integer_names_file_and_field(value: object, told: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        fields(width=value).integer("width", "n_embd")
    assert caught.value.message.startswith("config.json: width ")
    assert told in caught.value.message
    assert caught.value.hint


def test_aliases_are_taken_in_order_and_null_counts_as_missing() -> None:
    found = fields(hidden_size=None, n_embd=768, d_model=1)
    assert found.integer("hidden_size", "n_embd", "d_model") == 768
    assert found.is_stated("hidden_size")
    assert not found.has("hidden_size")
    assert found.optional_integer("hidden_size") is None
    assert found.integer("hidden_size", default=3) == 3


def test_numbers_flags_and_texts_are_checked_too() -> None:
    found = fields(rate=0.1, whole=1, one=1.0, on=True, name="silu", wrong=[])
    assert found.number("rate") == 0.1
    assert found.number("absent", default=2.5) == 2.5
    assert found.dropout("rate") == 0.1
    assert found.flag("on")
    assert not found.flag("absent", default=False)
    assert found.text("name") == "silu"
    assert found.choice("name", among={"silu": "silu"}) == "silu"
    for read in (
        lambda: found.dropout("one"),
        lambda: found.number("on"),
        lambda: found.number("absent"),
        lambda: found.flag("whole"),
        lambda: found.flag("absent"),
        lambda: found.text("wrong"),
        lambda: found.text("absent"),
        lambda: found.choice("name", among={"gelu": "gelu"}),
    ):
        with pytest.raises(ModelFileError):
            read()


def test_lists_hold_one_type_only() -> None:
    found = fields(kinds=["a", "b"], places=[0, 3], mixed=["a", 1], flags=[True], text="ab", long=[0] * 100_001)
    assert found.texts("kinds") == ("a", "b")
    assert found.integers("places") == (0, 3)
    assert found.texts("absent") is None
    assert found.integers("absent") is None
    for read in (
        lambda: found.texts("mixed"),
        lambda: found.integers("mixed"),
        lambda: found.integers("flags"),
        lambda: found.texts("text"),
        lambda: found.integers("long"),
    ):
        with pytest.raises(ModelFileError):
            read()


def test_fields_of_an_inner_object_are_named_with_it_and_share_its_notes() -> None:
    found = fields(text_config={"vocab_size": -1}, vision_config=3)
    inner = found.required("text_config")
    inner.note("assumed")
    inner.note("assumed")
    assert found.notes == ["assumed"]
    with pytest.raises(ModelFileError, match=r"text_config\.vocab_size must be"):
        inner.integer("vocab_size")
    assert found.nested("absent") is None
    with pytest.raises(ModelFileError, match="must be an object, got 3"):
        found.nested("vision_config")
    with pytest.raises(ModelFileError, match="audio_config is missing"):
        found.required("audio_config")


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
