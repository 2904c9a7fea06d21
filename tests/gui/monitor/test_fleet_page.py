"""A fleet in the Monitor tab: its cards, what fails, and what a person does with it."""

import threading
import time
from itertools import pairwise

import pytest
from fleet_kit import FakePrometheus, dcgm_fleet, serving
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from tab_kit import Probe, wait

from planner.fleet.connection import FleetConnection
from planner.gui.monitor.connect_dialogs import ConnectDialog
from planner.gui.monitor.fleet.fleet_page import FleetPage
from planner.present.fleet import HEATS


@pytest.fixture
def fake():
    made = FakePrometheus(dcgm_fleet(20, use=lambda place: 0.0 if place < 3 else 95.0), now=time.time())
    made.seen = lambda labels: made.now - (300 if labels["UUID"].startswith("GPU-00000005") else 2)
    return made


def connected(qtbot, tab, url: str) -> FleetPage:
    tab.connect_fleet(FleetConnection(url=url))
    wait(qtbot, lambda: tab.fleet.view is not None and tab.fleet.view.fleet.verdicts)
    return tab.fleet


def listed(page: FleetPage) -> list[tuple[str, int]]:
    return [(row.card.host, row.card.device.index) for row in page.table.records().records]


def test_a_fleet_is_shown_the_worst_first_and_searched(qtbot, make_tab, fake):
    tab = make_tab()
    with serving(fake) as url:
        page = connected(qtbot, tab, url)
        assert page.isVisible()
        assert page.headline.text().startswith("20 GPUs on 3 hosts: 1 silent and 3 idle, which cost $")
        assert "kWh in the last 24" in page.energy.text()
        assert listed(page)[:4] == [("node1", 4), ("node1", 0), ("node1", 1), ("node1", 2)]
        page.search.setText("node3")
        assert {host for host, _ in listed(page)} == {"node3"}
        page.search.clear()
        page.diagnosis.setCurrentIndex(page.diagnosis.findData("silent"))
        page.diagnosis.activated.emit(page.diagnosis.currentIndex())
        assert listed(page) == [("node1", 4)]
        assert page.diagnosis.currentText() == "silent (1)"
        assert "node1" in tab.copy_result()
        tab.focus_search()
        page.local.click()
        assert not page.isVisible()
        tab.show_fleet()
        assert page.isVisible()


def test_a_card_of_the_heat_map_opens_into_the_plots_and_into_the_plan(qtbot, make_tab, fake, workspace):
    tab = make_tab()
    with serving(fake) as url:
        page = connected(qtbot, tab, url)
        pictures = []
        for place in range(len(HEATS)):
            page.heat.activated.emit(place)
            pictures.append((page.map.grab().toImage(), page.scale.grab().toImage()))
        assert all(one != other for one, other in pairwise(pictures))
        key, cell = next(iter(page.map._cells.items()))
        assert page.map.text_of(page.view.rows[0]).splitlines()[0] == "node1, GPU 0: H100 80GB HBM3"
        QTest.mouseClick(page.map, Qt.MouseButton.LeftButton, pos=cell.center())
        wait(qtbot, lambda: page.card.plots.panels)
        assert page.card.key == key
        assert page.card.title.text() == "node1 · GPU 0 · NVIDIA H100 80GB HBM3"
        assert "Not exported here" in page.card.explanation.text()
        page.card.plan.click()
        assert page.card.menu.actions()[0].text().startswith("1")
        page.card.menu.actions()[-1].trigger()
        assert (workspace.plan.gpu, workspace.plan.count) == ("h100-sxm5-80gb", 8)
        page.card.menu.close()
        page.card.back.click()
        page.plan.click()
        page.menu.actions()[-1].trigger()
        assert workspace.plan.count == 20
        page.menu.close()


def test_the_keyboard_moves_over_the_heat_map(qtbot, make_tab, fake):
    tab = make_tab()
    with serving(fake) as url:
        page = connected(qtbot, tab, url)
        opened = []
        page.map.opened.connect(opened.append)
        for key in (
            Qt.Key.Key_Right,
            Qt.Key.Key_Right,
            Qt.Key.Key_Down,
            Qt.Key.Key_Up,
            Qt.Key.Key_Left,
            Qt.Key.Key_Return,
        ):
            QTest.keyClick(page.map, key)
        assert opened == [page.view.rows[0].card.key]
        QTest.keyClick(page.map, Qt.Key.Key_A)
        assert page.map._row_at(QPoint(-5, -5)) is None


def test_what_fails_is_said_and_the_last_readings_stay(qtbot, make_tab, fake):
    tab = make_tab()
    broken = threading.Event()

    def answer(path, form, headers):
        return (403, {}, b"") if broken.is_set() else fake(path, form, headers)

    with serving(answer) as url:
        page = connected(qtbot, tab, url)
        broken.set()
        page.refresh_button.click()
        wait(qtbot, page.problem.isVisible)
        assert "refuses access (403)" in page.problem.text()
        assert len(listed(page)) == 20
        assert page.status.text().startswith("last read at")
        broken.clear()
        page.refresh_button.click()
        wait(qtbot, lambda: not page.problem.isVisible())
    tab.connect_fleet(FleetConnection(url="http://127.0.0.1:9"))
    wait(qtbot, page.problem.isVisible)
    assert page.headline.text() == "This fleet cannot be read."
    assert "cannot be reached" in page.problem.text()
    page.again.setFocus()
    page.again.click()
    assert page.refresh_button.hasFocus()  # and no part of the plan bar above
    assert (page.headline.text(), page.again.isVisible()) == ("Connecting…", False)
    wait(qtbot, page.again.isVisible)
    with serving(fake) as url:
        page.change.click()
        dialog = tab.controller.dialog
        dialog.url.setText(url)
        dialog.connect_button.click()
        wait(qtbot, lambda: page.view is not None)
    assert not page.again.isVisible()


def test_a_slow_server_holds_up_nothing_and_closing_does_not_wait(qtbot, make_tab):
    tab = make_tab()
    over = threading.Event()

    def answer(*_):
        over.wait(20)
        return 200, {}, b""

    with serving(answer) as url, Probe() as probe:
        tab.connect_fleet(FleetConnection(url=url))
        qtbot.wait(200)
        tab.fleet.shut_down()
        QApplication.processEvents()
        assert not probe.stood_still
        over.set()


def test_the_dialog_asks_how_to_sign_in_and_keeps_no_secret(qtbot, theme, make_tab, monkeypatch):
    tab = make_tab()
    dialog = ConnectDialog(None, theme, tab)
    chosen = []
    dialog.chosen.connect(lambda *found: chosen.append(found))
    dialog.url.clear()
    dialog.accept()
    assert dialog.problem.text() == "Give an address."
    dialog.url.setText("https://mimir.example.org/prometheus")
    assert dialog.secret.isHidden()
    dialog.sign_in.setCurrentIndex(1)
    dialog.user.setText("me")
    dialog.secret.setText("s3cret")
    dialog.keep.setChecked(True)
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    dialog.accept()
    assert "keyring is not installed" in dialog.problem.text()
    dialog.keep.setChecked(False)
    dialog.tenant.setText("team")
    dialog.ca.setText("ca.pem")
    dialog.accept()
    ((connection, secret),) = chosen
    assert (connection.sign_in, connection.user, connection.tenant, secret) == ("basic", "me", "team", "s3cret")
    tab.connect_fleet(FleetConnection(url="http://127.0.0.1:9", sign_in="bearer"), "s3cret")
    assert "s3cret" not in tab.controller.settings.model_dump_json()
    assert tab.controller.settings.fleet.url == "http://127.0.0.1:9"
    tab.show_fleet()
    tab.ask_fleet()
    assert isinstance(tab.controller.dialog, ConnectDialog)
    tab.controller.dialog.reject()
