"""A person's own cards and changes on the command line: added, listed, exchanged, refused, and never lost."""

import json

import pytest

from planner.cli.main import main
from planner.paths import own_hardware_file


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["gpus", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def test_own_cards_are_added_found_exported_and_removed(said, tmp_path):
    file = tmp_path / "mine.json"
    card = json.loads(said("--show", "rtx-4090", "--json"))
    file.write_text(json.dumps(card | {"id": "my-4090", "name": "RTX 4090 48 GB of mine", "aliases": []}))
    assert said("--add", str(file)) == "Added 1 GPU and 0 changes.\n"
    assert "RTX 4090 48 GB of mine" in said("mine")
    assert said("--change", "rtx 3090", "--paid", "720", "--power-limit", "250", "--note", "used") == (
        "GeForce RTX 3090: paid $720, limited to 250 W, used.\n"
    )
    changed = json.loads(said("--show", "rtx-3090", "--json"))
    assert (changed["board_power_watts"], changed["power_limit_watts"]) == (350, 250)
    printed = said("--show", "rtx-3090")
    assert "Board power " in printed
    (limit,) = [line.split() for line in printed.splitlines() if "Your power limit " in line]
    (paid,) = [line.split() for line in printed.splitlines() if "Paid by you " in line]
    assert (limit[-2], paid[-2]) == ("yours", "yours")
    assert f"{paid[-1]} your own figure; entered " in printed
    assert "purchase_price_usd: yours, your own figure, " in said("rtx 3090", "--csv")
    assert {"basis": "yours", "certainty": "yours"}.items() <= changed["figure_notes"][0]["provenance"].items()
    assert "÷ power 350 W" in printed
    build = json.loads(said("--build", "2 x rtx-3090", "--json"))
    assert {step["key"]: step["value"] for step in build["figures"]}["cards"] == 500
    needed, *_, machine = said("--build", "2 x rtx-3090").split("\n")[:4]
    assert needed.startswith("Needs an ATX 3 power supply of 1,000 W or more, ")
    assert machine.startswith("2 × GeForce RTX 3090 limited to 250 W, host of 450 W, ")
    (connector,) = build["connectors"]
    assert "for each GPU 2 or more 8-pin plugs" in connector
    assert "GeForce RTX 3090" in said("--where", "paid < 800")
    assert said("--own").splitlines() == [
        "my-4090: RTX 4090 48 GB of mine, 24 GB",
        "rtx-3090: paid $720, limited to 250 W, used",
    ]
    assert said("--export", str(tmp_path / "out.json")) == "Wrote 1 GPU and 1 change.\n"
    printed = json.loads(said("--own", "--json"))
    assert printed == json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (printed["schema_version"], [change["gpu"] for change in printed["changes"]]) == (1, ["rtx-3090"])
    assert said("--remove", "my-4090") == "my-4090 is removed.\n"
    assert said("--remove", "RTX 3090") == "rtx-3090 has the data of the catalog again.\n"
    assert said("--own").startswith("No GPUs or changes of your own.")
    assert said("--add", str(tmp_path / "out.json")) == "Added 1 GPU and 1 change.\n"


def test_wrong_own_files_are_named_by_field(said, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('[{"id": "x", "name": "X", "vendor": "Nvidia"}]')
    assert "mine.json · x · vendor: there is no 'Nvidia'; choose NVIDIA" in said("--add", str(file), code=2)
    file.write_text("{}")
    assert "contains no GPU and no change" in said("--add", str(file), code=2)
    file.write_text('{"changes": [{"gpu": "gone", "note": "x", "date": "2026-11-01"}]}')
    assert "gone is not in the catalog; the change is kept." in said("--add", str(file))
    assert "gone is not in the catalog." in said("--own")
    assert "neither your own nor changed" in said("--remove", "rtx-4090", code=2)
    card = json.loads(said("--show", "rtx-4090", "--json"))
    file.write_text(json.dumps(card))
    assert "rtx-4090 replaces the bundled GPU with this id." in said("--add", str(file))


def test_one_figure_is_taken_back_and_the_others_stay(said):
    said("--change", "rtx-3090", "--paid", "720", "--power-limit", "250", "--note", "used")
    assert said("--change", "rtx-3090", "--paid", "none") == "GeForce RTX 3090: limited to 250 W, used.\n"
    assert said("--change", "rtx-3090", "--power-limit", "none") == "GeForce RTX 3090: used.\n"
    assert said("--change", "rtx-3090", "--note", "") == "GeForce RTX 3090: no changes.\n"
    assert said("--own").startswith("No GPUs or changes of your own.")
    assert said("--change", "rtx-3090", "--note", "") == "GeForce RTX 3090: no changes.\n"
    assert "--power-limit: accepts none only with --change" in said("--build", "l4", "--power-limit", "none", code=2)
    many = said("--change", "l4", "--paid", "many", code=2)
    assert "'many' is not a price in US dollars. Type a price in US dollars from 0 to 10,000,000, or none." in many


def test_only_what_is_said_now_is_judged(said):
    said("--change", "rtx-3090", "--paid", "5")
    refused = said("--change", "rtx-3090", code=2)
    assert refused.startswith("error: --change: has nothing to change\n")
    assert '--note "" remove' in refused
    file = own_hardware_file()
    kept = json.loads(file.read_text(encoding="utf-8"))
    kept["changes"][0]["power_limit_watts"] = 9000
    file.write_text(json.dumps(kept), encoding="utf-8")
    assert said("--change", "rtx-3090", "--paid", "600") == "GeForce RTX 3090: paid $600, limited to 9,000 W.\n"
    assert "--power-limit: 8,000 W is above" in said("--change", "rtx-3090", "--power-limit", "8000", code=2)
    assert said("--change", "rtx-3090", "--power-limit", "none") == "GeForce RTX 3090: paid $600.\n"


def test_what_cannot_be_said_of_a_card_names_its_option(said, tmp_path):
    limit = said("--change", "rtx-4090", "--power-limit", "9000", code=2)
    assert limit.startswith("error: --power-limit: 9,000 W is above the board power of 450 W\n")
    assert "--paid: 'inf' is not a price in US dollars" in said("--change", "l4", "--paid", "inf", code=2)
    assert "--note: ' ' is blank" in said("--change", "l4", "--note", " ", code=2)
    assert "above the board power of the L4, 72 W" in said("--build", "l4", "--power-limit", "73", code=2)
    file = tmp_path / "mine.json"
    card = json.loads(said("--show", "rtx-4090", "--json")) | {"id": "mine", "name": "RTX 3090", "aliases": []}
    file.write_text(json.dumps(card))
    refused = said("--add", str(file), code=2)
    assert "mine.json · mine · name: 'RTX 3090' is the name of rtx-3090 (GeForce RTX 3090) already" in refused
    assert not own_hardware_file().exists()


@pytest.mark.parametrize("command", [("gpus", "rtx", "4090"), ("fit", "llama-3.1-8b", "--gpu", "rtx-4090")])
def test_a_file_that_cannot_be_read_is_warned_of_and_left_as_it_is(capsys, command):
    file = own_hardware_file()
    file.parent.mkdir()
    file.write_text('{"cards": [{"id": "mine", "vendor": "Nvidia"}]}', encoding="utf-8")
    before = file.read_bytes()
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "RTX 4090" in printed.out
    assert printed.err.startswith("warning: your own hardware is ignored: ")
    assert f"{file} · mine · name: is missing" in printed.err
    for words in (("--change", "l4", "--paid", "5"), ("--remove", "mine"), ("--own",), ("--export", "out.json")):
        assert main(["gpus", *words]) == 2
        assert "until then it is not overwritten" in capsys.readouterr().err
    assert file.read_bytes() == before
