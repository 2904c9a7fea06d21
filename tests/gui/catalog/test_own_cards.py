"""User-defined cards are added, changed and deleted in the window."""

import json

import pytest
from PySide6.QtWidgets import QDialogButtonBox, QMessageBox

from planner.gui.catalog.own_cards import OwnCards
from planner.paths import own_hardware_file


@pytest.fixture
def tab(tab, qtbot, tasks):
    yield tab
    qtbot.waitUntil(lambda: not tasks.busy)


@pytest.fixture
def own(tab) -> OwnCards:
    tab.gpus.table.choose("rtx-3090")
    return tab.gpus.own


@pytest.fixture
def failures(workspace):
    """Collect what is shown across the window."""
    heard = []
    workspace.failed.connect(heard.append)
    return heard


def press(dialog, which):
    dialog.buttons.button(which).click()


def forget(own):
    """Ask to forget the current card, and agree."""
    box = own.ask_forget()
    next(button for button in box.buttons() if "Delete" in button.text()).click()


def gpu(workspace, name):
    return workspace.catalog.hardware.gpu(name)


def test_own_values_of_a_card_are_shown_at_once_and_stored(tab, own, workspace):
    dialog = own.ask_change()
    dialog.paid.set_value(720.0)
    dialog.limit.set_value(250.0)
    dialog.note._edit.setText("bought used")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert not dialog.isVisible()
    assert gpu(workspace, "rtx-3090").drawn_watts == 250
    assert gpu(workspace, "rtx-3090").board_power_watts == 350
    assert tab.gpus.model.find("rtx-3090").marked_name == "Yours: GeForce RTX 3090"
    kept = json.loads(own_hardware_file().read_text())["changes"]
    assert [(change["gpu"], change["purchase_price_usd"], change["note"]) for change in kept] == [
        ("rtx-3090", 720.0, "bought used")
    ]
    again = own.ask_change()
    assert (again.paid.value, again.limit.value, again.note.value) == (720.0, 250.0, "bought used")
    again.limit.set_value(None)
    press(again, QDialogButtonBox.StandardButton.Save)
    assert gpu(workspace, "rtx-3090").drawn_watts == 350
    assert gpu(workspace, "rtx-3090").purchase_price_usd == 720


def test_a_limit_above_the_board_power_and_a_name_of_another_are_refused(own, workspace, tmp_path, failures):
    dialog = own.ask_change()
    dialog.limit.set_value(9000.0)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert "9,000 W is above the board power of 350 W" in dialog.problem.text()
    press(dialog, QDialogButtonBox.StandardButton.Cancel)
    fresh = own.ask_new()
    fresh.name._edit.setText("GeForce RTX 4090 24GB")
    press(fresh, QDialogButtonBox.StandardButton.Save)
    assert "is the name of rtx-4090" in fresh.problem.text()
    press(fresh, QDialogButtonBox.StandardButton.Cancel)
    card = gpu(workspace, "rtx-3090").evolve(id="mine", aliases=())
    (tmp_path / "mine.json").write_text(card.model_dump_json(exclude_defaults=True), encoding="utf-8")
    own.add_from(tmp_path / "mine.json")
    assert "mine.json · mine · name: 'GeForce RTX 3090' is the name of rtx-3090" in failures.pop().message
    assert not own_hardware_file().exists()


@pytest.mark.parametrize("text", ["72O", "abc", "-5", "1e9"])
def test_nothing_is_saved_while_a_field_holds_what_is_not_allowed(own, workspace, qtbot, text):
    dialog = own.ask_change()
    qtbot.keyClicks(dialog.paid._edit, text)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert dialog.isVisible()
    assert dialog.problem.text() == dialog.paid.problem
    qtbot.waitUntil(lambda: dialog.height() >= dialog.layout().totalHeightForWidth(dialog.width()))
    assert "from 0.01 to 10,000,000" in dialog.problem.text()
    assert not own_hardware_file().exists()
    dialog.paid._edit.selectAll()
    qtbot.keyClicks(dialog.paid._edit, "720")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert not dialog.isVisible()
    assert gpu(workspace, "rtx-3090").purchase_price_usd == 720


def test_errors_name_the_form_field(own, workspace, qtbot):
    dialog = own.ask_change()
    dialog.limit.set_value(9000.0)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert dialog.problem.text().startswith("Power limit, W: 9,000 W is above the board power of 350 W. A power limit ")
    dialog.limit.set_value(None)
    dialog.note._edit.setText("two\u2028lines")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert dialog.problem.text().startswith("Remark: Contains ")
    press(dialog, QDialogButtonBox.StandardButton.Cancel)
    fresh = own.ask_new()
    fresh.name._edit.setText("rtx4090")
    press(fresh, QDialogButtonBox.StandardButton.Save)
    assert fresh.problem.text().startswith("Name: 'rtx4090' is the name of rtx-4090 ")
    assert fresh.problem.text().endswith("Choose another name.")
    qtbot.keyClicks(fresh.memory._edit, "4x")
    press(fresh, QDialogButtonBox.StandardButton.Save)
    assert fresh.problem.text().startswith("Memory, GiB: '4x' is not a size")
    press(fresh, QDialogButtonBox.StandardButton.Cancel)


def test_a_file_that_cannot_be_written_is_told_in_the_form(own):
    dialog = own.ask_new()
    own_hardware_file().mkdir(parents=True)
    dialog.name._edit.setText("Mine")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert dialog.isVisible()
    assert str(own_hardware_file()) in dialog.problem.text()
    press(dialog, QDialogButtonBox.StandardButton.Cancel)


def test_empty_fields_keep_the_catalog_values(own, workspace):
    dialog = own.ask_change()
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert not gpu(workspace, "rtx-3090").own


def test_a_card_like_another_is_added_found_and_used(tab, own, workspace):
    dialog = own.ask_new()
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert dialog.problem.text() == "Name: A GPU needs a name. Enter one."
    dialog.name._edit.setText("RTX 3090 48 GB")
    dialog.memory.set_value(48.0)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert not dialog.isVisible()
    assert gpu(workspace, "rtx-3090-48-gb").memory_bytes == 48 * 2**30
    tab.gpus.search("3090 48")
    assert [row.id for row in tab.gpus.model.records] == ["rtx-3090-48-gb"]
    second = own.ask_new()
    second.name._edit.setText("RTX 3090 48 GB")
    press(second, QDialogButtonBox.StandardButton.Save)
    assert "is already in the catalog" in second.problem.text()
    press(second, QDialogButtonBox.StandardButton.Cancel)


def test_a_new_card_does_not_copy_own_values_of_its_base(own, workspace):
    facts = gpu(workspace, "rtx-3090").notes
    dialog = own.ask_change()
    dialog.paid.set_value(720.0)
    dialog.limit.set_value(250.0)
    dialog.note._edit.setText("bought used")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    fresh = own.ask_new()
    fresh.name._edit.setText("Mine")
    press(fresh, QDialogButtonBox.StandardButton.Save)
    mine = gpu(workspace, "mine")
    assert (mine.purchase_price_usd, mine.power_limit_watts) == (None, None)
    assert mine.notes == ("Added by you, after the GeForce RTX 3090", *facts)


def test_deleting_removes_own_cards_and_own_values(tab, own, workspace, failures):
    assert own.ask_forget() is None
    assert "You have no values of your own" in failures.pop().message
    dialog = own.ask_new()
    dialog.name._edit.setText("Mine")
    press(dialog, QDialogButtonBox.StandardButton.Save)
    assert tab.gpus.table.current_id == "mine"
    workspace.apply("card", gpu="mine")
    forget(own)
    assert failures.pop().hint == "Choose another GPU for the plan first."
    assert own_hardware_file().read_text()
    workspace.apply("card", gpu="rtx-3090")
    tab.gpus.table.choose("mine")
    forget(own)
    assert not failures
    assert all(card.id != "mine" for card in workspace.catalog.hardware.gpus)
    assert not workspace.undo_stack.canUndo()
    assert workspace.modified


def test_the_deletion_dialog_names_what_is_deleted(own, workspace):
    dialog = own.ask_change()
    dialog.paid.set_value(720.0)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    box = own.ask_forget()
    assert box.text() == "Delete your own data about GeForce RTX 3090?"
    assert "This will be deleted: your changes: paid $720." in box.informativeText()
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert gpu(workspace, "rtx-3090").purchase_price_usd == 720
    forget(own)
    assert gpu(workspace, "rtx-3090").purchase_price_usd is None


def test_own_hardware_is_exported_and_imported(tab, own, workspace, tmp_path, failures):
    dialog = own.ask_change()
    dialog.paid.set_value(500.0)
    press(dialog, QDialogButtonBox.StandardButton.Save)
    own.export_to(tmp_path / "mine.json")
    forget(own)
    assert not gpu(workspace, "rtx-3090").own
    own.add_from(tmp_path / "mine.json")
    assert gpu(workspace, "rtx-3090").purchase_price_usd == 500
    own.add_from(tmp_path / "none.json")
    assert "none.json" in failures.pop().message


def test_a_wrong_file_says_what_to_do_in_the_window(own, tmp_path, failures):
    (tmp_path / "wrong.json").write_text('{"a": 1}', encoding="utf-8")
    own.add_from(tmp_path / "wrong.json")
    hint = failures.pop().hint
    assert "In the window, “Add a GPU like this one…” (menu Catalog, Your own)" in hint
    assert "in a shell, `gpu-planner gpus --show" in hint


def test_an_own_card_of_a_new_architecture_can_be_ticked_at_once(tab, own, workspace, tmp_path):
    card = gpu(workspace, "rtx-3090").evolve(id="mine", name="Mine", aliases=(), architecture="Tomorrow")
    (tmp_path / "mine.json").write_text(card.model_dump_json(exclude_defaults=True), encoding="utf-8")
    own.add_from(tmp_path / "mine.json")
    tab.gpus.narrow(tab.gpus.filter.with_query(architectures=("Tomorrow",)))
    assert [row.gpu.architecture for row in tab.gpus.model.records] == ["Tomorrow"]
    assert tab.gpus.facets._groups["architecture"].values == ("Tomorrow",)


def test_without_a_selected_card_no_form_opens(tab):
    tab.gpus.table.current_id = None
    assert tab.gpus.own.ask_change() is None
    assert tab.gpus.own.ask_new() is None
    assert tab.gpus.own.ask_forget() is None
