"""The whole application in a process of its own, as a person starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from planner.errors import CatalogError
from planner.gui import app as gui_app
from planner.gui.autosave import SavedSession
from planner.gui.workspace import SAMPLE_PLAN
from planner.hardware.own import OwnHardware, write_own
from planner.plan.files import load_plan, save_plan

START = """
import sys
from PySide6.QtCore import QTimer
from planner.gui.app import create
app, window = create(["gpu-planner", *sys.argv[1:]])
heavy = sorted({"pyqtgraph", "torch", "numpy"} & set(sys.modules))
"""


def run(body: str, home: Path, *arguments: str) -> dict:
    """Start the application, run `body`, which fills `told`, and quit; return what was told."""
    script = f"{START}told = {{'heavy': heavy}}\n{body}\nimport json; print(json.dumps(told))"
    environment = {**os.environ, "GPU_PLANNER_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOOK = """
told["card"] = window.workspace.plan.gpu
told["model"] = window.workspace.plan.model.id
told["count"] = window.workspace.plan.count
told["tab"] = window.tab.key
told["visible"] = window.isVisible()
told["banner"] = window.banner.text if window.banner.isVisible() else ""
"""
WAIT_FOR_FILE = """
from PySide6.QtCore import QEventLoop
loop = QEventLoop()
give_up = QTimer(timeout=loop.quit, singleShot=True, interval=30_000)
window.workspace.file_changed.connect(loop.quit)
give_up.start()
loop.exec()
give_up.stop()
"""
QUIT = "QTimer.singleShot(0, window.close); app.exec()"


def test_a_first_start_asks_what_to_do_before_a_sample_plan_without_heavy_imports(tmp_path):
    told = run(LOOK + QUIT, tmp_path)
    assert told == {
        "heavy": [],
        "card": "rtx-4090",
        "model": "meta-llama/Llama-3.1-8B",
        "count": 1,
        "tab": "start",
        "visible": True,
        "banner": "",
    }


def test_the_next_start_restores_plan_and_tab(tmp_path):
    run("window.workspace.apply('number of cards', count=6); window.show_tab('catalog')\n" + QUIT, tmp_path)
    told = run(LOOK + QUIT, tmp_path)
    assert (told["count"], told["tab"]) == (6, "catalog")


def test_a_start_after_a_first_one_without_a_choice_asks_again(tmp_path):
    run("window.show_tab('memory')\n" + QUIT, tmp_path)
    assert run(LOOK + QUIT, tmp_path)["tab"] == "start"


def test_a_plan_named_on_the_command_line_is_opened(tmp_path):
    file = tmp_path / "plan.json"
    save_plan(file, SAMPLE_PLAN.evolve(count=5))
    told = run(WAIT_FOR_FILE + LOOK + QUIT, tmp_path / "home", str(file))
    assert (told["count"], told["tab"]) == (5, "memory")


def test_damaged_settings_and_sessions_do_not_stop_the_start(tmp_path):
    files = (tmp_path / "settings.json", tmp_path / "autosave" / "x.json")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\xff{garbage")
    told = run(LOOK + QUIT, tmp_path)
    assert told["visible"]
    assert "Your settings cannot be read" in told["banner"]
    assert "A plan that a window left cannot be read" in told["banner"]
    assert all(file.with_suffix(".json.bad").exists() for file in files)


RECOVER = """
from PySide6.QtWidgets import QDialog
app.processEvents()
while window.tasks.busy:
    app.processEvents()
told["dialogs"] = [dialog.windowTitle() for dialog in window.findChildren(QDialog) if dialog.isVisible()]
"""


def test_plans_of_several_windows_that_crashed_are_offered_and_leftovers_deleted(tmp_path):
    folder = tmp_path / "autosave"
    folder.mkdir()
    for count, path in ((2, str(tmp_path / "plan.json")), (3, None)):
        session = SavedSession(plan=SAMPLE_PLAN.evolve(count=count), path=path, modified=True, number=count)
        (folder / f"{count}.json").write_text(session.model_dump_json())
    names = ("autosave/.2.json.abcdefgh.unfinished", ".plan.json.abcdefgh.unfinished", "settings.json.lock")
    leftovers = [tmp_path / name for name in names]
    for file in leftovers:
        file.touch()
    told = run(LOOK + RECOVER + QUIT, tmp_path)
    assert (told["count"], told["dialogs"]) == (3, ["Recover plans"])
    assert not any(file.exists() for file in leftovers)
    (folder / "2.json").unlink()
    told = run(LOOK + RECOVER + QUIT, tmp_path)
    assert (told["count"], told["dialogs"]) == (3, [])


def test_a_crash_of_the_last_run_is_reported(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "crash.log").write_text("Fatal Python error")
    assert "crashed the last time" in run(LOOK + QUIT, tmp_path)["banner"]


MONITOR = """
import psutil
from PySide6.QtCore import QEventLoop
window.monitor()
window.show_tab("memory")
loop = QEventLoop()
give_up = QTimer(timeout=loop.quit, singleShot=True, interval=30_000)
look = QTimer(interval=10, timeout=lambda: psutil.Process().children() and loop.quit())
give_up.start()
look.start()
loop.exec()
look.stop()
told["samplers"] = [child.pid for child in psutil.Process().children()]
"""


def test_the_sampler_process_ends_with_the_window(tmp_path):
    samplers = run(MONITOR + QUIT, tmp_path)["samplers"]
    assert samplers
    assert not any(psutil.pid_exists(pid) for pid in samplers)


def test_an_unfinished_recording_is_reported_at_the_start(tmp_path):
    recording = tmp_path / "run.gpurec"
    recording.write_bytes(b"x")
    unfinished = {"path": str(recording), "pid": 2**22 + 1, "process_started_seconds": 1.0}
    (tmp_path / "settings.json").write_text(json.dumps({"monitor": {"unfinished": [unfinished]}}))
    assert run(LOOK + QUIT, tmp_path)["banner"] == "The recording run.gpurec was interrupted when the program ended."
    recording.unlink()
    assert run(LOOK + QUIT, tmp_path)["banner"] == ""


WALK = """
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QScrollArea, QWidget


def name(widget):
    return " in ".join(type(level).__name__ for level in (widget, widget.parent(), widget.parent().parent()))


def scrolls(widget):
    return widget is not None and (isinstance(widget.parent(), QScrollArea) or scrolls(widget.parent()))


window.resize(1280, 800)
told["nameless"], told["cut"] = [], []
for key in ("start", *(place.key for place in window.places)):
    window.show_tab(key)
    app.processEvents()
    for widget in [widget for widget in window.findChildren(QWidget) if widget.isVisible()]:
        named = widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text())
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None and not named:
            told["nameless"].append(name(widget))
        inner = isinstance(widget.parent(), QLineEdit)  # the icons in a search field
        if not inner and isinstance(widget, (QAbstractButton, QComboBox, QLabel, QLineEdit)):
            least, frame = widget.minimumSizeHint(), QRect(widget.mapTo(window, QPoint()), widget.size())
            small = widget.width() < least.width() or widget.height() < least.height()
            if small or not (window.rect().contains(frame) or scrolls(widget)):
                told["cut"].append(f"{name(widget)}: {widget.size()} for {least}")
"""


def test_at_1280_by_800_nothing_is_cut_off_and_every_focusable_widget_has_a_name(tmp_path):
    told = run(WALK + QUIT, tmp_path)
    assert told["nameless"] == []
    assert told["cut"] == []


def test_an_unreadable_catalog_is_reported_and_ends_the_start(qapp, qtbot, monkeypatch):
    def fail(*_places):
        raise CatalogError(Path("catalog/gpus/x.json"), "h100", "memory_bytes", "must be positive")

    asked = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        asked.append(box.text())
        box.close()

    monkeypatch.setattr(gui_app, "load_catalog_or_bundled", fail)
    QTimer.singleShot(0, press)
    assert gui_app.main(["gpu-planner"]) == gui_app.CANNOT_START
    assert "memory_bytes" in asked[0]


def test_own_cards_are_loaded_and_a_broken_hardware_file_does_not_stop_the_start(tmp_path):
    change = {"gpu": "rtx-3090", "purchase_price_usd": 720, "date": "2026-11-01"}
    (tmp_path / "hardware.json").write_text(json.dumps({"changes": [change]}))
    own = 'told["own"] = [gpu.id for gpu in window.workspace.catalog.hardware.gpus if gpu.own]'
    told = run(f"{LOOK}{own}\n{QUIT}", tmp_path)
    assert (told["own"], told["banner"]) == (["rtx-3090"], "")
    (tmp_path / "hardware.json").write_text("{broken")
    told = run(f"{LOOK}{own}\n{QUIT}", tmp_path)
    assert told["own"] == []
    assert "hardware.json: is not JSON" in told["banner"]
    assert (tmp_path / "hardware.json").read_text() == "{broken"


def test_a_plan_on_an_own_card_survives_a_broken_hardware_file(tmp_path, catalog):
    card = catalog.hardware.gpu("rtx-3090").evolve(id="mine", name="Mine", aliases=())
    write_own(tmp_path / "hardware.json", OwnHardware(cards=(card,)))
    own = (tmp_path / "hardware.json").read_text()
    assert run("window.workspace.apply('card', gpu='mine')\n" + LOOK + QUIT, tmp_path)["card"] == "mine"
    (tmp_path / "hardware.json").write_text("{broken")
    told = run(LOOK + QUIT, tmp_path)
    assert told["card"] == SAMPLE_PLAN.gpu
    assert "hardware.json: is not JSON" in told["banner"]
    assert "The plan of your last session cannot be shown" in told["banner"]
    (kept,) = (tmp_path / "autosave" / "kept").iterdir()
    (tmp_path / "hardware.json").write_text(own)
    assert load_plan(kept).gpu == "mine"
    told = run(WAIT_FOR_FILE + LOOK + QUIT, tmp_path, str(kept))
    assert told["card"] == "mine"


NOTE_WINDOWS = """
from PySide6.QtCore import QEvent, QObject
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

class ShownWindows(QObject):
    def eventFilter(self, shown, event):
        if event.type() == QEvent.Type.Show and isinstance(shown, QWidget) and shown.isWindow():
            told["windows"].append(type(shown).__name__)
        return False

def wait_until(is_done):
    while not is_done():
        QTest.qWait(20)

told["windows"] = []
watcher = ShownWindows()
app.installEventFilter(watcher)
for place in window.places:
    window.show_tab(place.key)
    wait_until(lambda: not window.tasks.busy)
wait_until(lambda: any(panel.isVisible() for panel in window.tab.plots.panels))
told["active"] = window.isActiveWindow()
"""


def test_no_part_of_a_tab_is_a_window_for_a_moment(tmp_path):
    told = run(NOTE_WINDOWS + QUIT, tmp_path)
    assert told["windows"] == []
    assert told["active"]


def test_without_a_home_the_window_opens_and_says_that_nothing_is_kept(tmp_path):
    home = tmp_path / "file"
    home.touch()
    told = run(LOOK + QUIT, home)
    assert told["visible"]
    assert "cannot be kept for the next start" in told["banner"]
    assert home.read_bytes() == b""
