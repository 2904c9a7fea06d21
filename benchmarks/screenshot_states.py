"""Views of the window beside its tabs: the Start page's doors, popovers, drawers, dialogs, fleets and errors."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from screenshots import (
    USUAL_SIZE,
    draw_in_all_looks,
    drawn_schemes,
    sample_costs,
    sample_plans,
    save,
    settle,
    visible_dialogs,
    wait_until,
    worn_looks,
    write_picture,
)

if TYPE_CHECKING:
    from PySide6.QtWidgets import QLineEdit, QWidget

    from planner import Plan
    from planner.gui.memory.tab import MemoryTab
    from planner.gui.window import MainWindow

FLEET_CARDS = 100
# Width at which the questions are a drawer.
DRAWER_SIZE = (960, 700)
LOG = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
23.64 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this process has 22.43 GiB memory in use. Of the \
allocated memory 20.80 GiB is allocated by PyTorch, and 1.18 GiB is reserved by PyTorch but unallocated."""
# So much of a recording is its head, before the first reading.
HEADER_BYTES = 600
BROKEN_MODULE = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.missing\n"


def draw_start(window: "MainWindow", folder: Path) -> None:
    """Draw the Start page behind each of its doors."""
    from planner.gui.start_page import StartPage

    wait_until(lambda: window.workspace.detection != "pending")
    window.show_tab("start")
    page = window.tab
    if isinstance(page, StartPage):
        for key in ("fine-tune", "choose", "watch"):
            page.doors.choose(key)
            draw_in_all_looks(window, folder, f"start-{key}")


def draw_popovers(window: "MainWindow", folder: Path) -> None:
    """Draw each popover over the window."""
    from planner.glossary import find_term

    window.workspace.replace(sample_plans()["vllm"], None)  # a traced module has no form of its workload
    window.explainer.underline_terms()
    window.show_tab("memory")
    tab = memory_tab(window)
    for name, term in (("cache", "KV cache"), ("zero", "ZeRO"), ("ridge", "ridge point")):
        if found := find_term(term):
            show = partial(window.explainer.show_card, found, window.plan_bar)
            draw_popover(window, folder, f"term-{name}", show)
    draw_popover(window, folder, "models", window.plan_bar.pick_model)
    draw_popover(window, folder, "workload", window.plan_bar.edit_workload)
    draw_popover(window, folder, "cards", window.plan_bar.pick_card)
    draw_popover(window, folder, "palette", window.open_palette)
    draw_popover(window, folder, "recipes", window.navigator.start_from_recipe)
    draw_popover(window, folder, "fitting-cards", tab.run_primary_action)
    window.workspace.replace(never_fitting_plan(), None)
    draw_popover(window, folder, "no-fitting-cards", tab.run_primary_action)
    window.workspace.replace(sample_plans()["vllm"], None)
    catalog = window.catalog()
    draw_popover(window, folder, "columns", lambda: catalog.gpus.open_columns(catalog.bar.columns))


def never_fitting_plan() -> "Plan":
    """Return a plan that no card of the catalog holds."""
    from planner import ModelChoice, Plan, Training

    return Plan(model=ModelChoice(id="meta-llama/Llama-3.1-405B"), workload=Training(), gpu="h100-sxm5-80gb")


def draw_popover(window: "MainWindow", folder: Path, name: str, show: Callable[[], object]) -> None:
    """Draw the popover that `show` opens, in every look."""
    from PySide6.QtWidgets import QApplication

    for look in worn_looks(window):
        show()
        settle(window)
        popover = QApplication.activePopupWidget()
        if popover is None:
            raise RuntimeError(f"{name} did not open")
        save_over(window, popover, folder / f"popover-{name}-{look}.png")
        popover.close()


def save_over(window: "MainWindow", above: "QWidget", file: Path) -> None:
    """Write a picture of `window` with the popover `above` where it stands on the screen."""
    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QPainter

    picture = window.grab()
    painter = QPainter(picture)
    painter.drawPixmap(above.mapToGlobal(QPoint()) - window.mapToGlobal(QPoint()), above.grab())
    painter.end()
    picture.save(str(file))
    print(file)


def draw_drawers(window: "MainWindow", folder: Path) -> None:
    """Draw the questions of a narrow window, and the sections opened of a plan on several cards."""
    window.resize(*DRAWER_SIZE)
    window.workspace.replace(sample_plans()["sharded"], None)
    for key in ("memory", "cost"):
        window.show_tab(key)
        window.tab.open_questions()
        for scheme in drawn_schemes():
            window.choose_scheme(scheme)
            save(window, folder / f"drawer-{key}-{scheme}.png")
    window.show_tab("memory")
    open_sections(window.tab)
    draw_in_all_looks(window, folder, "memory-unfolded")
    window.workspace.replace(sample_costs()["always"], None)
    window.show_tab("cost")
    open_sections(window.tab)
    draw_in_all_looks(window, folder, "cost-unfolded")


def draw_objectives(window: "MainWindow", folder: Path) -> None:
    """Draw each objective, and what an engine holds besides a model, with all sections opened."""
    window.show_tab("memory")
    for name, plan in sample_objectives().items():
        window.workspace.replace(plan, None)
        settle(window)
        open_sections(window.tab)
        draw_in_all_looks(window, folder, f"objective-{name}")


def sample_objectives() -> "dict[str, Plan]":
    """Return a plan for each objective, and with a draft, adapters and a cache in RAM."""
    from planner import Inference, ModelChoice, Plan, Training

    llama = ModelChoice(id="meta-llama/Llama-3.1-8B")
    lora = Training(method="lora", activation_checkpointing="full", sequence_length=1536)
    objectives: dict[str, dict[str, object]] = {
        "dpo": {"method": "dpo"},
        "ppo": {"method": "ppo", "reward": "model"},
        "grpo": {"method": "grpo", "engine": "same-cards", "engine_memory": 0.3},
        "grpo-starved": {"method": "grpo", "engine": "same-cards", "engine_memory": 0.05},
    }
    plans = {
        name: Plan(model=llama, workload=lora.evolve(micro_batch=8, alignment=alignment), gpu="h100-sxm5-80gb")
        for name, alignment in objectives.items()
    }
    drafted = {"method": "model", "model": "meta-llama/Llama-3.2-1B", "tokens": 4}
    serving = Inference(profile="vllm", batch=8, speculation=drafted, adapters={"slots": 4, "rank": 32})
    return {**plans, "drafted": Plan(model=llama, workload=serving, gpu="h100-sxm5-80gb")}


def open_sections(whole: "QWidget") -> None:
    """Open each section of `whole` that is shown."""
    from PySide6.QtWidgets import QToolButton

    from planner.gui.widgets.section import Section

    for section in whole.findChildren(Section):
        if section.isVisible() and not section.is_open:
            section.findChild(QToolButton).click()


def draw_more_dialogs(window: "MainWindow", folder: Path) -> None:
    """Draw the dialogs that need something first: a recording, a log, a search, code to trace, a change to save."""
    monitor = window.monitor()
    monitor.controller.show_demo()
    wait_until(lambda: not monitor.feed.is_live)
    for scheme in drawn_schemes():
        window.choose_scheme(scheme)
        window.workspace.replace(sample_plans()["monitored"], None)
        window.monitor()
        for name in ("monitor.why", "monitor.summary", "monitor.speed", "monitor.mark", "monitor.track"):
            draw_opened(window, folder / f"dialog-{name}-{scheme}.png", window.commands[name].trigger)
        for name in ("catalog.change", "help.basics"):
            draw_opened(window, folder / f"dialog-{name}-{scheme}.png", window.commands[name].trigger)
        window.workspace.replace(sample_costs()["run"], None)
        draw_opened(window, folder / f"dialog-recommend-all-{scheme}.png", lambda: open_options(window))
        window.show_tab("memory")
        draw_opened(window, folder / f"dialog-log-{scheme}.png", lambda: compare_log(window))
        draw_opened(window, folder / f"dialog-consent-{scheme}.png", lambda: trace_broken(window, folder))
        draw_opened(window, folder / f"dialog-trace-script-{scheme}.png", window.navigator.trace_script)
        draw_blocking(window, folder / f"dialog-open-hub-{scheme}.png", window.documents.choose_hub_model)
        window.workspace.apply("edit", count=2)
        draw_blocking(window, folder / f"dialog-save-{scheme}.png", window.documents.new)
    monitor.feed.go_live()


def draw_fleet(window: "MainWindow", folder: Path) -> None:
    """Draw a fleet, one of its cards, what a refusal leaves of it, and a fleet that was never read."""
    from fleet import dcgm_fleet, played, serving

    from planner.fleet.connection import FleetConnection

    tab, is_refused = window.monitor(), False
    answer = played(dcgm_fleet(FLEET_CARDS, use=lambda place: 0.0 if place % 10 == 3 else 60.0 + place * 7 % 40))
    with serving(lambda *request: (403, {}, b"") if is_refused else answer(*request)) as url:
        tab.connect_fleet(FleetConnection(url=url))
        page = tab.fleet
        if page is None:
            raise RuntimeError("the fleet did not open")
        wait_until(lambda: page.view is not None and bool(page.view.fleet.verdicts))
        draw_in_all_looks(window, folder, "fleet")
        page.open_card(page.table.records().records[0].card.key)
        wait_until(lambda: bool(page.card.plots.panels))
        draw_in_all_looks(window, folder, "fleet-card")
        page.card.back.click()
        page.search.setText("no such host")
        draw_in_all_looks(window, folder, "fleet-nothing-found")
        page.search.clear()
        is_refused = True
        page.refresh_button.click()
        wait_until(page.problem.isVisible)
        draw_in_all_looks(window, folder, "fleet-refused")
        tab.connect_fleet(FleetConnection(url="http://127.0.0.1:1"))
        wait_until(page.problem.isVisible)
        draw_in_all_looks(window, folder, "fleet-unreachable")
    for scheme in drawn_schemes():
        window.choose_scheme(scheme)
        draw_opened(window, folder / f"dialog-fleet-{scheme}.png", tab.ask_fleet)
    page.local.click()


def draw_recovery(window: "MainWindow", folder: Path) -> None:
    """Draw what a crash and a file that was changed meanwhile lead to."""
    from planner.gui.autosave import SavedSession
    from planner.paths import state_dir
    from planner.plan.files import save_plan

    plans, file = list(sample_plans().values()), folder / "shared.json"
    for number, plan in enumerate(plans[:3]):
        path = None if number else str(file)
        left = SavedSession(plan=plan, path=path, modified=True, number=number, saved_at=datetime(2026, 11, 24, 14, 5))
        (state_dir() / "autosave" / f"left{number}.json").write_text(left.model_dump_json())
    window.show_tab("memory")
    window.workspace.replace(plans[0], None)
    for scheme in drawn_schemes():
        window.choose_scheme(scheme)
        draw_opened(window, folder / f"dialog-recovery-{scheme}.png", window.recover_plans)
        window.workspace.save_plan(file)
        window.workspace.apply("edit", count=3)
        save_plan(file, plans[0].evolve(count=4))
        draw_blocking(window, folder / f"dialog-changed-file-{scheme}.png", window.documents.save)
        window.workspace.replace(plans[0], None)
    file.unlink()


def draw_opened(window: "MainWindow", file: Path, show: Callable[[], object]) -> None:
    """Draw the dialogs that `show` opens, and close them."""
    show()
    settle(window)
    wait_until(lambda: bool(visible_dialogs()))
    for dialog in visible_dialogs():
        write_picture(dialog, file)
        dialog.close()


def draw_blocking(window: "MainWindow", file: Path, show: Callable[[], object]) -> None:
    """Draw the dialog that `show` opens and waits for, and cancel it."""
    from PySide6.QtCore import QTimer

    def draw() -> None:
        for dialog in visible_dialogs():
            write_picture(dialog, file)
            dialog.reject()

    QTimer.singleShot(500, window, draw)
    show()


def open_options(window: "MainWindow") -> None:
    """Open the recommendation with all its options."""
    from planner.gui.cost.recommend_dialog import RecommendDialog

    tab = window.cost()
    tab.choose_hardware()
    settle(window)
    dialog = tab.dialog
    if isinstance(dialog, RecommendDialog):
        wait_until(lambda: dialog.recommendation is not None)
        open_sections(dialog)


def compare_log(window: "MainWindow") -> None:
    """Paste the message of a run that went out of memory."""
    tab = memory_tab(window)
    tab.compare_with_log()
    tab.log_dialog.source.field.setPlainText(LOG)
    settle(window)


def trace_broken(window: "MainWindow", folder: Path) -> None:
    """Ask to trace a module that fails."""
    from planner import Target, TraceRequest

    code = folder / "broken.py"
    code.write_text(BROKEN_MODULE)
    target = Target(kind="file", place=str(code), name="Net")
    request = TraceRequest(target=target, task="training", inputs=({"value": {"kind": "tensor", "shape": (2, 4)}},))
    memory_tab(window).tracer.trace(request)


def draw_empty(window: "MainWindow", folder: Path) -> None:
    """Draw the views that have nothing to show: a search without a match, no card to compare, no model chosen."""
    from planner.gui.start_page import StartPage

    tab = window.catalog()
    tab.gpus.search("at least 5000 GiB under 100 USD")
    draw_in_all_looks(window, folder, "empty-search")
    tab.gpus.search("")
    tab.show_view("compare")
    draw_in_all_looks(window, folder, "empty-comparison")
    tab.show_view("table")
    window.show_tab("start")
    page = window.tab
    if isinstance(page, StartPage):
        page.doors.choose("run")
        page.show_me.click()
        draw_in_all_looks(window, folder, "no-model")


def draw_recordings(window: "MainWindow", folder: Path) -> None:
    """Draw recordings without readings, and one that a crash cut, with the offer to open it."""
    from planner.paths import resources_dir

    whole = (resources_dir() / "demo" / "training.gpurec").read_bytes()
    monitor = window.monitor()
    for name, size in (("empty", 0), ("header", HEADER_BYTES), ("cut", len(whole) // 2)):
        file = folder / f"{name}.gpurec"
        file.write_bytes(whole[:size])
        if name == "cut":
            monitor.unfinished_banner.show_offers((file,))
            draw_in_all_looks(window, folder, "recording-offered")
            monitor.unfinished_banner.open.click()
        else:
            window.documents.open(file)
        wait_until(lambda: window.banner.isVisible() or not monitor.feed.is_live)
        draw_in_all_looks(window, folder, f"recording-{name}")
        window.banner.hide()
        monitor.feed.go_live()
        file.unlink()


def draw_errors(window: "MainWindow", folder: Path) -> None:
    """Draw what the window says about files and entries that it refuses, and about a model that it cannot fetch."""
    plan, recording = folder / "bad.plan.json", folder / "bad.gpurec"
    config, older = folder / "unread" / "config.json", folder / "newer.plan.json"
    config.parent.mkdir(exist_ok=True)
    plan.write_text('{"schema_version": 3, "model": ')
    older.write_text(json.dumps({"schema_version": 999}))
    recording.write_text("not a recording")
    config.write_text(json.dumps({"model_type": "unheard-of", "architectures": ["UnheardOfModel"], "hidden_size": 64}))
    window.show_tab("memory")
    for name, path in (("plan", plan), ("newer-plan", older), ("recording", recording), ("model", config)):
        window.documents.open(path)
        wait_until(window.banner.isVisible)
        draw_in_all_looks(window, folder, f"error-{name}")
        window.banner.hide()
    window.show_tab("memory")
    window.documents.open_hub("hf:nobody/nothing-of-this-name")
    wait_until(window.banner.isVisible)
    draw_in_all_looks(window, folder, "error-hub")
    window.banner.hide()
    draw_refused(window, folder)
    draw_failed_trace(window, folder)
    for path in (plan, older, recording, config):
        path.unlink()
    config.parent.rmdir()


def draw_refused(window: "MainWindow", folder: Path) -> None:
    """Draw a field whose number is refused."""
    from PySide6.QtTest import QTest

    window.resize(*USUAL_SIZE)
    field = number_edit(window, "Batch size")
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "many")
    draw_in_all_looks(window, folder, "error-number")
    QTest.keyClicks(field, "\b\b\b\b1")


def number_edit(window: "MainWindow", name: str) -> "QLineEdit":
    """Return the text field called `name` of the current tab."""
    from PySide6.QtWidgets import QLineEdit

    return next(edit for edit in window.tab.findChildren(QLineEdit) if edit.accessibleName().startswith(name))


def draw_failed_trace(window: "MainWindow", folder: Path) -> None:
    """Draw the trace of a module that fails."""
    from PySide6.QtWidgets import QMessageBox

    tab = memory_tab(window)
    trace_broken(window, folder)
    consent = tab.trace_controller.consent
    if consent is not None:
        run = QMessageBox.ButtonRole.AcceptRole
        next(button for button in consent.buttons() if consent.buttonRole(button) == run).click()
        settle(window)
        wait_until(lambda: not tab.tracer.busy)
        draw_in_all_looks(window, folder, "error-trace")
    with suppress(FileNotFoundError):
        (folder / "broken.py").unlink()


def memory_tab(window: "MainWindow") -> "MemoryTab":
    """Return the Memory tab, which is shown.

    Raises:
        TypeError: If another tab is shown.
    """
    from planner.gui.memory.tab import MemoryTab

    if not isinstance(window.tab, MemoryTab):
        raise TypeError("the Memory tab is not shown")
    return window.tab
