"""A person's own cards and changes: merged, kept from updates, exported, and wrong files named by field."""

import json
from datetime import date
from pathlib import Path

import pytest
from effort import refused_at_once

from planner.errors import CatalogError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.derived import DERIVED_FIGURES
from planner.hardware.gpu import Provenance
from planner.hardware.names import resolve_gpu
from planner.hardware.own import (
    OWN_SCHEMA,
    CardChange,
    CardOverrides,
    OwnHardware,
    derive_card,
    first_problem,
    make_card_change,
    own_json,
    read_own,
    unknown_changes,
    with_own_hardware,
    write_own,
)

TODAY = date(2026, 11, 22)
MINE = {
    "id": "my-4090-48gb",
    "name": "RTX 4090 48 GB (modified)",
    "vendor": "NVIDIA",
    "segment": "consumer",
    "architecture": "Ada Lovelace",
    "memory_label": "48 GB",
    "memory_bytes": 48 * 2**30,
    "compute_capability": "8.9",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.json"


def _written(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


@pytest.mark.parametrize("content", [MINE, [MINE], {"cards": [MINE]}])
def test_one_card_a_list_or_a_whole_file(file: Path, content: object) -> None:
    own = read_own(_written(file, content), TODAY)
    assert [card.name for card in own.cards] == ["RTX 4090 48 GB (modified)"]
    assert own.cards[0].provenance.source == "your own word"
    assert own.cards[0].provenance.as_of == "2026-11-22"
    assert (own.cards[0].provenance.basis, own.cards[0].provenance.certainty) == ("yours", "yours")


def test_own_figures_of_older_files_are_read_as_ones_own(file: Path, hardware: HardwareCatalog) -> None:
    measured = {"basis": "measured", "certainty": "single-source", "as_of": "2026-11-01"}
    bundled = {"field": "smi_memory_bytes", "provenance": {**measured, "source": "a log"}}
    noted = {"field": "memory_bytes", "provenance": {**measured, "source": "your own figure"}}
    card = MINE | {"provenance": {**measured, "source": "your own word"}, "figure_notes": [noted, bundled]}
    for today in (None, TODAY):
        (read,) = read_own(_written(file, {"cards": [card]}), today).cards
        where = {field: read.provenance_of(field) for field in ("name", "memory_bytes", "smi_memory_bytes")}
        assert [each.basis for each in where.values()] == ["yours", "yours", "measured"]
        assert [each.certainty for each in where.values()] == ["yours", "yours", "single-source"]
        assert {each.as_of for each in where.values()} == {"2026-11-01"}
    write_own(file, read_own(file))
    assert read_own(file).cards == (read,)
    usable = read.evolve(usable_memory_bytes=47 * 2**30)
    assert hardware.usable_memory(usable).explanation == "yours: 47.00 GiB"


def test_a_figure_is_ones_own_in_basis_and_certainty() -> None:
    with pytest.raises(SpecError, match="in both basis and certainty"):
        Provenance(basis="yours", certainty="confirmed", source="an invoice", as_of="2026-11-01")


def test_own_cards_come_first_marked_and_found_by_name(file: Path, hardware: HardwareCatalog) -> None:
    merged = with_own_hardware(hardware, read_own(_written(file, MINE), TODAY))
    assert merged.gpus[0].id == "my-4090-48gb"
    assert [gpu.id for gpu in merged.gpus if gpu.own] == ["my-4090-48gb"]
    assert len(merged.gpus) == len(hardware.gpus) + 1
    assert merged.systems == hardware.systems
    assert resolve_gpu(merged, "my-4090-48gb").own


def test_a_newer_catalog_does_not_destroy_an_own_card_of_the_same_id(file: Path, hardware: HardwareCatalog) -> None:
    own = read_own(_written(file, MINE | {"id": "rtx-4090"}), TODAY)
    merged = with_own_hardware(hardware, own)
    assert len(merged.gpus) == len(hardware.gpus)
    assert merged.gpu("rtx-4090").memory_label == "48 GB"
    assert hardware.gpu("rtx-4090").memory_label == "24 GB"


def test_changes_mark_a_card_as_own_and_say_so_of_each_figure(hardware: HardwareCatalog) -> None:
    change = CardChange(
        gpu="rtx-3090", purchase_price_usd=720, power_limit_watts=250, note="from a miner", date="2026-11-01"
    )
    own = OwnHardware(changes=(change, CardChange(gpu="gone", note="sold", date="2026-11-01")))
    merged, bundled = with_own_hardware(hardware, own), hardware.gpu("rtx-3090")
    gpu = merged.gpu("rtx-3090")
    assert (gpu.own, gpu.purchase_price_usd, gpu.board_power_watts) == (True, 720, 350)
    assert (gpu.power_limit_watts, gpu.drawn_watts, bundled.drawn_watts) == (250, 250, 350)
    assert DERIVED_FIGURES["tflops_per_watt"].value(gpu) == DERIVED_FIGURES["tflops_per_watt"].value(bundled)
    assert gpu.launch_price_usd == bundled.launch_price_usd
    assert gpu.provenance_of("board_power_watts") == bundled.provenance_of("board_power_watts")
    assert gpu.provenance_of("power_limit_watts") == Provenance.own("your own figure", "2026-11-01")
    assert gpu.notes[-2:] == (
        "Your power limit: 250 W of 350 W; the rates assume no limit",
        "from a miner",
    )
    assert unknown_changes(hardware, own) == ("gone",)
    assert [each.id for each in merged.gpus] == [each.id for each in hardware.gpus]


def test_a_limit_of_a_card_without_known_power_and_a_note_alone(hardware: HardwareCatalog) -> None:
    unknown = next(gpu for gpu in hardware.gpus if gpu.board_power_watts is None)
    own = OwnHardware(
        changes=(
            CardChange(gpu=unknown.id, power_limit_watts=99, date="2026-11-01"),
            CardChange(gpu="rtx-4090", note="water cooled", date="2026-11-01"),
        )
    )
    merged = with_own_hardware(hardware, own)
    assert merged.gpu(unknown.id).notes[-1].startswith("Your power limit: 99 W; ")
    assert merged.gpu("rtx-4090").notes[-1] == "water cooled"
    assert merged.gpu("rtx-4090").drawn_watts == 450
    assert merged.gpu(unknown.id).drawn_watts == 99


def test_a_limit_above_the_board_power_holds_nothing_and_is_left_out(hardware: HardwareCatalog) -> None:
    change = CardChange(gpu="rtx-4090", power_limit_watts=9000, date="2026-11-01")
    own = OwnHardware(changes=(change,))
    gpu = with_own_hardware(hardware, own).gpu("rtx-4090")
    assert (gpu.power_limit_watts, gpu.drawn_watts) == (None, 450)
    assert gpu.notes[-1] == "Your power limit of 9,000 W is above the board power of 450 W and is ignored"
    assert first_problem(with_own_hardware(hardware, own), own) == (
        "rtx-4090",
        "power_limit_watts",
        "9,000 W is above the board power of 450 W",
        "A power limit must be below the board power.",
    )
    assert first_problem(hardware, OwnHardware(changes=(change.evolve(power_limit_watts=450),))) is None
    assert first_problem(hardware, OwnHardware(changes=(change.evolve(gpu="gone"),))) is None
    with pytest.raises(SpecError, match="above the board power of 450 W"):
        gpu.evolve(power_limit_watts=9000)


@pytest.mark.parametrize(
    ("fields", "field", "owner"),
    [
        ({"id": "rtx4090"}, "id", "rtx-4090"),
        ({"name": "RTX 3090"}, "name", "rtx-3090"),
        ({"aliases": ("my pride", "NVIDIA GeForce RTX 3090 24GB")}, "aliases.1", "rtx-3090"),
    ],
)
def test_a_name_that_another_card_has_is_refused(
    hardware: HardwareCatalog, file: Path, fields: dict[str, object], field: str, owner: str
) -> None:
    own = read_own(_written(file, MINE | fields), TODAY)
    problem = first_problem(with_own_hardware(hardware, own), own)
    assert problem is not None
    assert (problem.record, problem.field) == (own.cards[0].id, field)
    assert f"is the name of {owner} (" in problem.reason
    wanted = {"id": "another id", "name": "another name", "aliases.1": "Remove this alias"}
    assert wanted[field] in problem.hint


def test_a_card_in_place_of_a_bundled_one_keeps_its_names(hardware: HardwareCatalog) -> None:
    own = OwnHardware(cards=(hardware.gpu("rtx-3090").evolve(memory_label="48 GB"),))
    assert first_problem(with_own_hardware(hardware, own), own) is None


def test_nothing_of_ones_own_changes_nothing(file: Path, hardware: HardwareCatalog) -> None:
    assert with_own_hardware(hardware, read_own(file)) is hardware


def test_files_join_export_and_lose_a_card(file: Path) -> None:
    first = read_own(_written(file, MINE), TODAY)
    newer = OwnHardware(
        cards=(first.cards[0].evolve(memory_label="47 GB"),),
        changes=(CardChange(gpu="rtx-3090", purchase_price_usd=1, date="2026-11-01"),),
    )
    combined = first.merged_with(newer)
    assert [card.memory_label for card in combined.cards] == ["47 GB"]
    write_own(file, combined)
    assert read_own(file) == combined
    assert json.loads(file.read_text(encoding="utf-8"))["schema_version"] == OWN_SCHEMA
    assert combined.contains("rtx-3090")
    assert combined.contains("my-4090-48gb")
    assert not combined.contains("rtx-4090")
    assert combined.without("my-4090-48gb").without("rtx-3090") == OwnHardware(cards=(), changes=())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MINE | {"memory_bytes": 0}, "my-4090-48gb · memory_bytes: must be more than 0, not 0"),
        ([{"name": "x"}], "cards 1 · id: is missing"),
        ({"cards": [1]}, "cards 1: 1 is not an object of named fields"),
        ({"cards": 1}, "cards: 1 is not a list"),
        ({"changes": [{"gpu": "rtx-3090", "date": "2026-11-01"}]}, "rtx-3090: is empty"),
        ({"changes": [{"gpu": "a", "power_limit_watts": -5, "date": "2026-11-01"}]}, "a · power_limit_watts: must be"),
        ({"cards": [MINE, MINE]}, "cards name 'my-4090-48gb' twice"),
        ({"schema_version": 9}, "schema_version: must be at most 1, not 9"),
        ({"colour": "red"}, "colour: there is no such field"),
        (5, "mine.json"),
        (MINE | {"name": " "}, "my-4090-48gb · name: ' ' is blank"),
        (
            MINE | {"name": "RTX\x1b[31m"},
            r"my-4090-48gb · name: contains '\x1b', which is not allowed in a line of text",
        ),
        (MINE | {"notes": ["fine", "two\nlines"]}, r"my-4090-48gb · notes.1: contains '\n'"),
        (
            MINE | {"bandwidth_bytes_per_s": float("inf")},
            "bandwidth_bytes_per_s: a number of too many digits is not a number below",
        ),
        (MINE | {"memory_bytes": 10**30}, "memory_bytes: an integer of more than 30 digits is not a number below"),
        ([MINE | {"memory_bytes": 10**29}], "my-4090-48gb · memory_bytes: must be at most 1,125,899,906,842,624"),
        (MINE | {"released": "2026-13"}, "released: '2026-13' is not a year, month or date"),
        (MINE | {"released": "26"}, "released: '26' is not a year"),
        ({"changes": [{"gpu": "a", "note": "  ", "date": "2026-11-01"}]}, "a · note: '  ' is blank"),
        (
            {"changes": [{"gpu": "a", "note": "x", "date": "2026-13-45"}]},
            "date: '2026-13-45' is not a date",
        ),
        ({"changes": [{"gpu": "a", "note": "x", "date": "20261101"}]}, "date: '20261101' is not a date"),
    ],
)
def test_a_wrong_file_names_the_record_and_the_field(file: Path, content: object, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_own(_written(file, content), TODAY)
    assert message in caught.value.message
    assert str(file) in caught.value.message
    assert caught.value.hint


def test_a_printed_card_can_be_added_with_what_is_printed_beside_its_record(file: Path) -> None:
    assert (
        read_own(_written(file, MINE | {"derived": {}, "prices": {}, "count": 2}), TODAY).cards[0].name == MINE["name"]
    )


def test_blanks_that_are_printed_are_part_of_a_line(file: Path) -> None:
    own = read_own(_written(file, MINE | {"name": "RTX\u00a04090\u200948\u00a0GB"}), TODAY)
    assert own.cards[0].name.endswith("GB")


def test_where_ones_own_is_kept_the_hint_says_how_to_mend_it(file: Path) -> None:
    for content in ("{]", '{"cards": [{"id": "x"}]}', '{"cards": [{"id": "x", "vendor": "NVIDIA", "name": 1}]}'):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(CatalogError) as caught:
            read_own(file)
        assert caught.value.hint.endswith("until then it is not overwritten.")


def test_what_is_no_json_a_folder_or_missing(file: Path, tmp_path: Path) -> None:
    file.write_text("{]")
    with pytest.raises(CatalogError, match="is not JSON: a field name in double quotes is missing in line 1"):
        read_own(file)
    with pytest.raises(CatalogError, match="is a folder, not a hardware file"):
        read_own(tmp_path)
    with pytest.raises(CatalogError, match="cannot be read"):
        read_own(tmp_path / "none.json", TODAY)
    file.write_text("[" * 200_000)
    with pytest.raises(CatalogError, match=r"is nested too deep|is not JSON"):
        read_own(file)
    file.write_text(f'{{"cards": [{"1" * 4301}]}}')
    with pytest.raises(CatalogError, match=r"cards\.0: a number of too many digits"):
        read_own(file)
    with pytest.raises(CatalogError, match="cannot be written"):
        write_own(file / "under-a-file.json", OwnHardware())


def test_many_wrong_records_are_refused_by_the_first(file: Path) -> None:
    file.write_text(json.dumps({"cards": [{"id": 0}] * 20_000}), encoding="utf-8")
    with refused_at_once(), pytest.raises(CatalogError, match="cards 1"):
        read_own(file)


def test_what_is_said_names_the_field_that_is_wrong() -> None:
    assert make_card_change("l4", "2026-11-01", {"note": "x"}).note == "x"
    with pytest.raises(SpecError, match=r"note: contains '\\x1b'"):
        make_card_change("l4", "2026-11-01", {"note": "\x1b[0m"})


def test_a_card_like_another_has_figures_that_a_card_can_have(hardware: HardwareCatalog) -> None:
    with pytest.raises(SpecError, match="board_power_watts: must be at most"):
        derive_card(hardware.gpu("l4"), "Mine", CardOverrides(board_power_watts=1e9), "2026-11-22")


def test_a_change_says_something() -> None:
    with pytest.raises(SpecError, match="is empty"):
        CardChange(gpu="x", date="2026-11-01")


def test_a_card_like_another_differs_in_what_is_said(hardware: HardwareCatalog) -> None:
    base = hardware.gpu("rtx-4090")
    figures = CardOverrides(memory_bytes=48 * 2**30, purchase_price_usd=2500)
    card = derive_card(base, " RTX 4090 (48 GB) ", figures, "2026-11-22")
    assert (card.id, card.name, card.memory_label) == ("rtx-4090-48-gb", "RTX 4090 (48 GB)", "48 GB")
    assert (card.usable_memory_bytes, card.launch_price_usd, card.aliases) == (None, None, ())
    assert (card.bandwidth_bytes_per_s, card.rates) == (base.bandwidth_bytes_per_s, base.rates)
    assert card.provenance_of("memory_bytes").source == "your own figure"
    assert card.provenance_of("memory_label").source == "your own figure"
    assert card.provenance_of("bandwidth_bytes_per_s") == base.provenance_of("bandwidth_bytes_per_s")
    assert with_own_hardware(hardware, OwnHardware(cards=(card,))).gpu(card.id).purchase_price_usd == 2500


def test_a_card_like_another_keeps_what_was_measured_of_the_same_memory(hardware: HardwareCatalog) -> None:
    base = hardware.gpu("rtx-4090")
    card = derive_card(base, "Mine", CardOverrides(), "2026-11-22")
    assert (card.usable_memory_bytes, card.memory_label) == (base.usable_memory_bytes, base.memory_label)


def test_a_card_like_another_takes_over_nothing_that_is_said_of_that_one(hardware: HardwareCatalog) -> None:
    first = derive_card(hardware.gpu("rtx-3090"), "First", CardOverrides(purchase_price_usd=900), "2026-11-01")
    change = CardChange(gpu="first", power_limit_watts=250, note="bought used", date="2026-11-02")
    own = OwnHardware(cards=(first,), changes=(change,))
    changed = derive_card(with_own_hardware(hardware, own).gpu("first"), "Second", CardOverrides(), "2026-11-22")
    assert (changed.purchase_price_usd, changed.power_limit_watts) == (None, None)
    assert not {note.field for note in changed.figure_notes} & {"purchase_price_usd", "power_limit_watts"}
    base = with_own_hardware(hardware, own.without_changes()).gpu("first")
    second = derive_card(base, "Second", CardOverrides(purchase_price_usd=5), "2026-11-22")
    assert second.notes == ("Added by you, after the First", *hardware.gpu("rtx-3090").notes)
    assert second.provenance_of("purchase_price_usd").as_of == "2026-11-22"


def test_a_card_needs_a_name_of_letters_or_digits(hardware: HardwareCatalog) -> None:
    with pytest.raises(SpecError, match="needs a letter or a digit"):
        derive_card(hardware.gpu("l4"), " …!", CardOverrides(), "2026-11-22")


def test_what_is_said_of_a_card_is_replaced_or_taken_back() -> None:
    change = CardChange(gpu="l4", note="old", date="2026-11-01")
    newer = change.evolve(note="new")
    own = OwnHardware().with_change_replaced("l4", change).with_change_replaced("l4", newer)
    assert own.changes == (newer,)
    assert own.change_of("l4") == newer
    assert own.with_change_replaced("l4", None) == OwnHardware()
    assert OwnHardware().change_of("l4") is None


OWN = OwnHardware(changes=(CardChange(gpu="rtx-4090", purchase_price_usd=1_500.0, date="2026-11-22"),))


def test_written_hardware_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "hardware.json"
    write_own(file, OWN)
    assert read_own(file) == OWN
    assert file.read_text(encoding="utf-8") == own_json(OWN) + "\n"


def test_a_missing_file_is_empty_unless_it_is_imported(tmp_path: Path) -> None:
    from datetime import date

    assert read_own(tmp_path / "none.json") == OwnHardware()
    with pytest.raises(CatalogError, match="cannot be read"):
        read_own(tmp_path / "none.json", date(2026, 11, 22))


def test_json_states_the_version_and_omits_defaults() -> None:
    assert own_json(OwnHardware()) == '{\n  "schema_version": 1\n}'
    assert "power_limit_watts" not in own_json(OWN)


def test_an_unwritable_folder_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="cannot be written"):
        write_own(tmp_path / "file" / "hardware.json", OWN)
