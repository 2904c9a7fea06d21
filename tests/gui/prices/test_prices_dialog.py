import json

import pytest
from price_samples import AWS_ROWS, archive, feed, feed_offer, offer, table
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QWidget

from planner.gui.cost.prices_dialog import PricesDialog
from planner.present.cost.offers import OFFER_COLUMNS

NEWCOMER = "Akamai"


def serve(prices, *rows, day="20261101"):
    prices.files["/aws/version"] = f"{day}-1".encode()
    prices.files[f"/aws/{day}-1/catalog.zip"] = archive("aws.csv", table(*rows))
    prices.files["/feed"] = feed(feed_offer())


def serve_newcomer(prices):
    """Serve a provider of whom nothing is bundled, so that nothing is held."""
    prices.files["/feed"] = feed(feed_offer(provider=NEWCOMER.lower()))


def rents_from_newcomer(dialog):
    return any(one.provider == NEWCOMER for one in dialog._workspace.catalog.cost.offers)


def fetch(dialog, qtbot):
    with qtbot.waitSignal(dialog.settled):
        qtbot.mouseClick(dialog.refresh_button, Qt.MouseButton.LeftButton)


def price_of(dialog, instance="p5.48xlarge"):
    found = [one for one in dialog._workspace.catalog.cost.offers if one.instance == instance]
    return found[0].on_demand_price_usd_per_hour


def offer_file(tmp_path, **changes):
    path = tmp_path / "mine.json"
    mine = offer(id="mine", provider="Cellar", instance="rack", **changes)
    path.write_text(json.dumps([mine.model_dump(mode="json", exclude_defaults=True)]), encoding="utf-8")
    return path


def test_nothing_is_asked_of_the_network_unless_somebody_says_so(dialog: PricesDialog, prices):
    assert prices.asked == []
    assert dialog.state.text() == "The bundled prices are in use; no prices were fetched."
    assert "oldest price" in dialog.about.text()
    assert not dialog.bundled_button.isEnabled()
    assert not dialog.held.isVisible()
    assert dialog.model.rowCount(QModelIndex()) > 100


def test_fetched_prices_come_into_use_everywhere(dialog: PricesDialog, prices, qtbot):
    serve_newcomer(prices)
    evaluations = []
    dialog._workspace.changed.connect(lambda *_: evaluations.append(1))
    fetch(dialog, qtbot)
    assert f"{NEWCOMER}: new prices, 1 offer" in dialog.log.toPlainText()
    assert rents_from_newcomer(dialog)
    assert dialog.state.text().startswith("Fetched prices are in use")
    assert evaluations
    assert not dialog.cancel_button.isVisible()


def test_progress_names_what_is_fetched(dialog: PricesDialog, prices, qtbot):
    serve(prices, *AWS_ROWS)
    seen = []
    dialog._steps.stepped.connect(lambda *step: seen.append(step))
    fetch(dialog, qtbot)
    assert seen == [(0, 2, "gpuhunt: AWS"), (1, 2, "the feed"), (2, 2, "")]


def test_fetching_is_cancelled_and_what_was_there_stays(dialog: PricesDialog, prices, qtbot, tasks):
    prices.files["/aws/version"] = lambda _handler: prices.over.wait(5)
    before = price_of(dialog)
    dialog.fetch()
    qtbot.waitUntil(lambda: bool(prices.asked))
    assert not dialog.refresh_button.isEnabled()
    qtbot.mouseClick(dialog.cancel_button, Qt.MouseButton.LeftButton)
    prices.over.set()
    assert dialog.log.toPlainText().startswith("Cancelled")
    assert not tasks.busy
    assert price_of(dialog) == before
    assert dialog.refresh_button.isEnabled()


def test_closing_ends_a_fetch(dialog: PricesDialog, prices, qtbot, tasks):
    prices.files["/aws/version"] = lambda _handler: prices.over.wait(5)
    dialog.fetch()
    qtbot.waitUntil(lambda: bool(prices.asked))
    dialog.close()
    prices.over.set()
    assert not tasks.busy


def test_held_prices_wait_for_a_word(dialog: PricesDialog, prices, qtbot):
    serve(prices, AWS_ROWS[0].replace("55.04", "98.32"))
    before = price_of(dialog)
    fetch(dialog, qtbot)
    assert dialog.held.isVisible()
    assert "AWS" in dialog.held.text()
    assert "98.32" in dialog.log.toPlainText()
    assert price_of(dialog) == before
    qtbot.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    assert price_of(dialog) == 98.32
    assert not dialog.accept_button.isVisible()


def test_held_prices_are_thrown_away(dialog: PricesDialog, prices, qtbot, store):
    serve(prices, AWS_ROWS[0].replace("55.04", "98.32"))
    fetch(dialog, qtbot)
    qtbot.mouseClick(dialog.discard_button, Qt.MouseButton.LeftButton)
    assert store.read().held.parts == ()
    assert not dialog.held.isVisible()


def test_bundled_prices_are_one_click_away_and_so_is_the_way_back(dialog: PricesDialog, prices, qtbot):
    serve_newcomer(prices)
    fetch(dialog, qtbot)
    qtbot.mouseClick(dialog.bundled_button, Qt.MouseButton.LeftButton)
    assert not rents_from_newcomer(dialog)
    assert "as you chose" in dialog.state.text()
    assert dialog.bundled_button.text().replace("&", "") == "Use the fetched prices again"
    qtbot.mouseClick(dialog.bundled_button, Qt.MouseButton.LeftButton)
    assert rents_from_newcomer(dialog)


def test_a_source_that_fails_is_told_and_the_others_count(dialog: PricesDialog, prices, qtbot):
    serve(prices, *AWS_ROWS)
    del prices.files["/feed"]
    fetch(dialog, qtbot)
    assert "the feed: responded with status 404" in dialog.log.toPlainText()
    assert "AWS: " in dialog.log.toPlainText()


def test_a_folder_that_cannot_be_written_is_told(dialog: PricesDialog, prices, qtbot, store):
    store.folder.parent.mkdir(parents=True, exist_ok=True)
    store.folder.write_text("a file in the way", encoding="utf-8")
    serve(prices, *AWS_ROWS)
    dialog.fetch()
    qtbot.waitUntil(lambda: "cannot be" in dialog.log.toPlainText())
    assert dialog.refresh_button.isEnabled()


def test_offers_of_ones_own_are_added_and_removed(dialog: PricesDialog, qtbot, tmp_path):
    dialog.add_from(offer_file(tmp_path))
    assert price_of(dialog, "rack") == 55.04
    assert dialog.log.toPlainText() == "Added mine."
    dialog.search.setText("cellar")
    assert dialog.model.rowCount(QModelIndex()) == 1
    dialog.table.choose("mine")
    assert dialog.remove_button.isEnabled()
    qtbot.mouseClick(dialog.remove_button, Qt.MouseButton.LeftButton)
    assert all(one.id != "mine" for one in dialog._workspace.catalog.cost.offers)


def test_adding_the_same_offer_again_replaces_it(dialog: PricesDialog, tmp_path, store):
    dialog.add_from(offer_file(tmp_path))
    dialog.add_from(offer_file(tmp_path, on_demand_price_usd_per_hour=40.0))
    assert [one.on_demand_price_usd_per_hour for one in store.read().own] == [40.0]


@pytest.mark.parametrize("content", ["[", '[{"id": "x"}]', '[{"on_demand_price_usd_per_hour": 0}]'])
def test_a_wrong_file_is_told_and_adds_nothing(dialog: PricesDialog, tmp_path, store, content):
    path = tmp_path / "wrong.json"
    path.write_text(content, encoding="utf-8")
    dialog.add_from(path)
    assert str(path) in dialog.log.toPlainText()
    assert store.read().own == ()


def test_bundled_offers_cannot_be_removed(dialog: PricesDialog):
    dialog.table.choose(dialog.model.records[0].id)
    assert not dialog.remove_button.isEnabled()
    dialog.remove_chosen()
    assert dialog.model.records


def test_history_is_listed_when_asked_for(dialog: PricesDialog):
    recent = len(dialog.model.records)
    dialog.history.click()
    assert len(dialog.model.records) > recent


def test_every_word_of_a_search_counts(dialog: PricesDialog):
    dialog.search.setText("runpod 4090")
    shown = [dialog.model.record(row) for row in range(dialog.model.rowCount(QModelIndex()))]
    assert shown
    assert all("RunPod" in row.offer.provider and "4090" in row.card for row in shown)
    dialog.search.setText("")
    assert dialog.model.rowCount(QModelIndex()) == len(dialog.model.records)


def test_ages_are_told_in_a_word(dialog: PricesDialog):
    age = next(column for column in OFFER_COLUMNS if column.key == "age")
    told = [age.text(row) for row in dialog.model.records]
    assert "no date" in told
    assert all(text == "no date" or text.endswith(("fresh", "recent", "aging", "old")) for text in told)


def test_everything_the_keyboard_reaches_has_a_name(dialog: PricesDialog):
    reached = [made for made in dialog.findChildren(QWidget) if made.focusPolicy() & Qt.FocusPolicy.TabFocus]
    nameless = [made for made in reached if not (made.accessibleName() or getattr(made, "text", str)())]
    assert [type(made).__name__ for made in nameless if made.isVisible()] == []
