"""Draw screenshots of the window.

python benchmarks/screenshots.py FOLDER                       every view, light and dark, at three sizes
python benchmarks/screenshots.py --only costs FOLDER          the views of one part of the window
python benchmarks/screenshots.py --look light-1280x800 FOLDER every view in one scheme and size
python benchmarks/screenshots.py --readme FOLDER              the pictures of the README

QT_SCALE_FACTOR=1.5 draws them as a screen at 150 % does.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from PySide6.QtWidgets import QDialog, QWidget

    from planner import Plan
    from planner.gui.window import MainWindow
    from planner.monitor.history import History

Drawn = Callable[["MainWindow", Path], None]
Scheme = Literal["light", "dark"]
Size = tuple[int, int]


class Look(NamedTuple):
    """The size and color scheme of a window."""

    size: Size
    scheme: Scheme

    def __str__(self) -> str:
        """Return the look as files and the command line name it."""
        return f"{self.scheme}-{self.size[0]}x{self.size[1]}"


USUAL_SIZE: Size = (1280, 800)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
ALL_LOOKS = tuple(Look(size, scheme) for size in (USUAL_SIZE, (1920, 1080), (1024, 700)) for scheme in SCHEMES)
LOOKS = list(ALL_LOOKS)
"""The looks that are drawn: all, or those that the command line names."""
SETTLE_MS = 1_000
# Menu actions that open a dialog.
DIALOGS = (
    "plan.recommend",
    "plan.prices",
    "plan.trace",
    "plan.compare-log",
    "plan.launch",
    "catalog.new-card",
    "monitor.doctor",
    "monitor.machine",
    "monitor.settings",
    "help.manual",
    "help.shortcuts",
    "help.about",
)
TRACE_SECONDS = 300
# So long the machine is watched before it is drawn.
WATCHED_SECONDS = 40
# When the cards of the demo are slowed by heat.
HOT_SECONDS = 440


def main() -> None:
    """Draw into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", action="store_true", help="draw the pictures of the README only")
    parser.add_argument("--only", choices=[part.__name__.removeprefix("draw_") for part in parts()], help="one part")
    names = [str(look) for look in ALL_LOOKS]
    parser.add_argument("--look", choices=names, action="append", help="a scheme and size (default all)")
    arguments = parser.parse_args()
    LOOKS[:] = [look for look in ALL_LOOKS if str(look) in (arguments.look or names)]
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        drawn = (draw_readme,) if arguments.readme else parts()
        draw(
            arguments.folder, [part for part in drawn if part.__name__ == f"draw_{arguments.only or part.__name__[5:]}"]
        )


def parts() -> tuple[Drawn, ...]:
    """Return the functions that draw the parts of the window."""
    import screenshot_states as states

    return (
        draw_pages,
        draw_dialogs,
        draw_catalog,
        draw_monitor,
        draw_plans,
        draw_costs,
        draw_serving,
        draw_traced,
        states.draw_start,
        states.draw_popovers,
        states.draw_drawers,
        states.draw_objectives,
        states.draw_more_dialogs,
        states.draw_fleet,
        states.draw_recovery,
        states.draw_empty,
        states.draw_recordings,
        states.draw_errors,
    )


def draw(folder: Path, drawn: Iterable[Drawn]) -> None:
    """Open the window as on a first start, and draw parts of it."""
    from planner.gui.app import create, finish_start

    app, window = create(["gpu-planner"])
    finish_start(window)
    for draw_part in drawn:
        draw_part(window, folder)
    window.close()
    app.aboutToQuit.emit()


def draw_pages(window: "MainWindow", folder: Path) -> None:
    """Draw the Start page and each tab as on a first start."""
    wait_until(lambda: window.workspace.detection != "pending")
    for key in ("start", *(place.key for place in window.places)):
        window.show_tab(key)
        draw_in_all_looks(window, folder, key)


def draw_dialogs(window: "MainWindow", folder: Path) -> None:
    """Draw each dialog in both color schemes."""
    window.workspace.replace(sample_costs()["run"], None)
    for scheme in drawn_schemes():
        window.choose_scheme(scheme)
        for name, dialog in opened_dialogs(window):
            write_picture(dialog, folder / f"dialog-{name}-{scheme}.png")


def opened_dialogs(window: "MainWindow") -> "Iterator[tuple[str, QDialog]]":
    """Open each dialog in turn, and yield the command that opens it with the dialog."""
    for name in DIALOGS:
        window.commands[name].trigger()
        settle(window)
        wait_until(lambda: bool(visible_dialogs()))
        for dialog in visible_dialogs():
            yield name, dialog
            dialog.close()


def visible_dialogs() -> "list[QDialog]":
    """Return the dialogs on the screen."""
    from PySide6.QtWidgets import QApplication, QDialog

    return [shown for shown in QApplication.topLevelWidgets() if isinstance(shown, QDialog) and shown.isVisible()]


def draw_catalog(window: "MainWindow", folder: Path) -> None:
    """Draw the systems, the catalog as a plot, and cards and a system side by side."""
    tab = window.catalog()
    tab.swap_page()
    draw_in_all_looks(window, folder, "catalog-systems")
    tab.swap_page()
    tab.show_view("scatter")
    draw_in_all_looks(window, folder, "catalog-scatter")
    tab.compare.add(("accelerators:rtx-3090@2", "accelerators:rtx-4090", "systems:dgx-a100-640gb"))
    tab.show_view("compare")
    wait_until(lambda: not tab.tasks.busy)
    draw_in_all_looks(window, folder, "catalog-compare")
    tab.compare.clear()
    tab.show_view("table")


def draw_monitor(window: "MainWindow", folder: Path) -> None:
    """Play the demo, and draw it at its beginning, with its processes, and once a card is lost."""
    tab = window.monitor()
    tab.controller.show_demo()
    wait_until(lambda: not tab.feed.is_live)
    draw_in_all_looks(window, folder, "monitor-demo")
    tab.focus_search()
    tab.replay_bar.slider.setValue(tab.replay_bar.slider.maximum())
    draw_in_all_looks(window, folder, "monitor-lost")
    tab.process_section.set_open(False)
    tab.feed.go_live()


def draw_plans(window: "MainWindow", folder: Path) -> None:
    """Draw the memory tab with plans of each kind, and two of them side by side."""
    window.show_tab("memory")
    plans = sample_plans()
    for name, plan in plans.items():
        window.workspace.replace(plan, None)
        draw_in_all_looks(window, folder, f"plan-{name}")
    compare_adapters(window, plans["lora"])
    draw_in_all_looks(window, folder, "plans-compared")
    window.workspace.pin.put(None)


def compare_adapters(window: "MainWindow", lora: "Plan") -> None:
    """Show the plan `lora` side by side with the same plan for QLoRA."""
    window.workspace.replace(lora, None)
    window.workspace.pin.put(lora.evolve(workload=lora.workload.evolve(method="qlora")))


def sample_plans() -> "dict[str, Plan]":
    """Return a plan for each kind of view that the memory tab has."""
    from planner import Inference, ModelChoice, Plan, Training

    llama, large = ModelChoice(id="meta-llama/Llama-3.1-8B"), ModelChoice(id="meta-llama/Llama-3.1-70B")
    adapting = Training(method="lora", micro_batch=2, activation_checkpointing="full")
    sharded = Training(activation_checkpointing="full", parallel={"zero": 3})
    staged = Inference(parallel={"pipeline": 2}, gpus=({"id": "rtx-4090"}, {"id": "tesla-t4"}))
    serving = Inference(profile="vllm", batch=16, context_length=8192)
    piped = Training(activation_checkpointing="full", parallel={"pipeline": 4})
    seeing = Inference(images=4, image_size=(1024, 1024))
    partly = Inference(weights="Q4_K_M", gpu_layers=40)
    return {
        "training": Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=Training(), gpu="rtx-4090"),
        "lora": Plan(model=llama, workload=adapting, gpu="rtx-4090"),
        "sharded": Plan(model=llama, workload=sharded, gpu="h100-sxm5-80gb", count=8),
        "unequal": Plan(model=llama, workload=staged),
        "vllm": Plan(model=llama, workload=serving, gpu="h100-sxm5-80gb"),
        "llama.cpp": Plan(model=large, workload=partly, gpu="rtx-4090"),
        "tight": Plan(model=llama, workload=Inference(context_length=63_000), gpu="rtx-4090"),
        "images": Plan(model=ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0"), gpu="rtx-4090"),
        "vision": Plan(model=ModelChoice(id="Qwen/Qwen2-VL-7B-Instruct"), workload=seeing, gpu="rtx-4090"),
        "monitored": Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=adapting, gpu="rtx-4090"),
        "staged": Plan(model=llama, workload=piped, gpu="h100-sxm5-80gb", count=8),
        "tuned-on-two": Plan(model=llama, workload=adapting, gpu="rtx-3090", count=2),
        "adapted-on-eight": Plan(
            model=large, workload=adapting.evolve(parallel={"zero": 3}), gpu="h100-sxm5-80gb", count=8
        ),
        "no-card": Plan(model=llama),
        "does-not-fit": Plan(model=llama, workload=Training(micro_batch=4), gpu="rtx-4090"),
    }


def draw_costs(window: "MainWindow", folder: Path) -> None:
    """Draw the cost tab with a plan of each kind, and two of them side by side."""
    tab = window.cost()
    plans = sample_costs()
    for name, plan in plans.items():
        window.workspace.replace(plan, None)
        wait_until(lambda: tab.drawn or not tab.answer.view.awaits_range)
        draw_in_all_looks(window, folder, f"cost-{name}")
    window.workspace.replace(plans["run"], None)
    window.workspace.pin.put(plans["always"])
    draw_in_all_looks(window, folder, "costs-compared")
    window.workspace.pin.put(None)


def sample_costs() -> "dict[str, Plan]":
    """Return a plan for each kind of view that the cost tab has."""
    from planner import Inference, ModelChoice, Plan, Training
    from planner.cost.terms import CostTerms, DailyHours, Run, Service

    llama = ModelChoice(id="meta-llama/Llama-3.1-8B")
    tuning = Training(method="qlora", activation_checkpointing="full")
    serving = Inference(profile="vllm", batch=16)
    run = CostTerms(job=Run(amount=50_000_000, unit="tokens"))
    always = CostTerms(job=DailyHours(hours_per_day=24, days_per_week=7))
    busy = CostTerms(job=Service(requests_per_day=300_000, peak_factor=4))
    unequal = Inference(gpus=({"id": "rtx-4090"}, {"id": "rtx-3090"}))
    return {
        "run": Plan(model=llama, workload=tuning, gpu="rtx-4090", cost=run),
        "always": Plan(model=llama, workload=tuning, gpu="rtx-4090", cost=always),
        "service": Plan(model=llama, workload=serving, gpu="h100-sxm5-80gb", cost=busy),
        "eight": Plan(model=llama, workload=Training(activation_checkpointing="full"), gpu="h100-sxm5-80gb", count=8),
        "not-offered": Plan(model=llama, workload=tuning, gpu="rtx-2000-ada"),
        "no-card": Plan(model=llama),
        "unequal": Plan(model=llama, workload=unequal),
    }


def draw_serving(window: "MainWindow", folder: Path) -> None:
    """Draw a simulated service with its charts, one that cannot keep up, and the search for its hardware."""
    from planner.gui.cost.serving_search import ServingSearchDialog

    tab = window.cost()
    panel = tab.serving
    tab.controls.job.latency.set_open(True)
    for section in (panel.curve_section, panel.minute_section):
        section.set_open(True)
    for name, plan in sample_services().items():
        panel.simulation = None
        window.workspace.replace(plan, None)
        wait_until(lambda: panel.simulation is not None and not window.tasks.busy)
        draw_in_all_looks(window, folder, f"serving-{name}")
        bar = tab.results.verticalScrollBar()
        bar.setValue(panel.y() + panel.curve_section.y())
        draw_in_all_looks(window, folder, f"serving-{name}-charts")
        bar.setValue(0)
    trace = folder / "requests.csv"
    lines = "".join(f"{second / 4},{400 + 7 * (second % 90)},{80 + second % 40}\n" for second in range(1_200))
    trace.write_text(f"arrival_seconds,input_tokens,output_tokens\n{lines}", encoding="utf-8")
    panel.load_trace(trace)
    wait_until(lambda: panel.traced is not None and not window.tasks.busy)
    draw_in_all_looks(window, folder, "serving-trace")
    panel.close_trace.click()
    trace.unlink()
    wait_until(lambda: not window.tasks.busy)
    panel.find_gpus.click()
    wait_until(lambda: isinstance(tab.dialog, ServingSearchDialog) and tab.dialog.isVisible())
    assert isinstance(tab.dialog, ServingSearchDialog)
    wait_until(lambda: isinstance(tab.dialog, ServingSearchDialog) and bool(tab.dialog.model.records))
    write_picture(tab.dialog, folder / "serving-search-begun.png")
    wait_until(lambda: not window.tasks.busy)
    for look in worn_looks(window):
        write_picture(tab.dialog, folder / f"serving-search-{look}.png")
    tab.dialog.close()


def sample_services() -> "dict[str, Plan]":
    """Return a service that meets its targets, and one that cannot keep up."""
    from planner import Inference, ModelChoice, Plan
    from planner.cost.terms import CostTerms, Service

    llama, vllm = ModelChoice(id="meta-llama/Llama-3.1-8B"), Inference(profile="vllm")
    targets = {"ttft_seconds": 1.0, "tpot_seconds": 0.05}
    quiet = CostTerms(job=Service(requests_per_day=60_000, prompt_tokens=1_500, **targets))
    busy = CostTerms(job=Service(requests_per_day=900_000, prompt_tokens=1_500, **targets))
    return {
        "saturated": Plan(model=llama, workload=vllm, gpu="l40s", cost=busy),
        "held": Plan(model=llama, workload=vllm, gpu="l40s", cost=quiet),
    }


def draw_traced(window: "MainWindow", folder: Path) -> None:
    """Trace GPT-2 to check its estimate, plan with the trace, and draw both; nothing where PyTorch is missing."""
    from planner import ModelChoice, Training
    from planner.gui.memory.tab import MemoryTab
    from planner.trace.run import missing_packages_hint

    window.show_tab("memory")
    tab = window.tab
    if missing_packages_hint(config=True) is not None or not isinstance(tab, MemoryTab):
        return
    model = ModelChoice(id="openai-community/gpt2")
    window.workspace.apply("gpt2", model=model, workload=Training(micro_batch=8), gpu="rtx-4090")
    window.workspace.navigator.check_estimate()
    wait_until(lambda: not tab.tracer.busy)
    draw_in_all_looks(window, folder, "estimate-checked")
    tab.comparison.use.click()
    wait_until(lambda: tab.trace.result is not None)
    draw_in_all_looks(window, folder, "memory-traced")
    bar = tab.results.verticalScrollBar()
    bar.setValue(bar.maximum())
    for number, name in enumerate(("modules", "alive", "reserved", "assumed")):
        tab.trace.tables.show_page(number)
        save(window, folder / f"memory-traced-{name}.png")


def draw_in_all_looks(window: "MainWindow", folder: Path, name: str) -> None:
    """Draw the window's current content in every look."""
    for look in worn_looks(window):
        save(window, folder / f"{name}-{look}.png")


def worn_looks(window: "MainWindow") -> Iterator[Look]:
    """Give the window each look that is drawn, and yield it."""
    for look in LOOKS:
        window.resize(*look.size)
        window.choose_scheme(look.scheme)
        yield look


def drawn_schemes() -> list[Scheme]:
    """Return the color schemes of the looks that are drawn."""
    return list(dict.fromkeys(look.scheme for look in LOOKS))


def settle(window: "MainWindow") -> None:
    """Wait until panels that update only for an unchanged plan are complete."""
    from PySide6.QtTest import QTest

    QTest.qWait(SETTLE_MS)
    wait_until(lambda: not window.tab.tasks.busy)


def wait_until(done: Callable[[], bool]) -> None:
    """Let the window work until `done`.

    Raises:
        TimeoutError: If this takes longer than the time limit of a trace.
    """
    from PySide6.QtTest import QTest

    end = monotonic() + TRACE_SECONDS
    while not done():
        if monotonic() > end:
            raise TimeoutError("the trace did not end")
        QTest.qWait(SETTLE_MS)


def draw_readme(window: "MainWindow", folder: Path) -> None:
    """Draw a plan that fits (light), a training plan that does not fit (dark) with one term opened, and the monitor."""
    from planner import ModelChoice, Training
    from planner.gui.memory.breakdown import Breakdown

    window.resize(*USUAL_SIZE)
    window.choose_scheme("light")
    save(window, folder / "start-light.png")
    for scheme in SCHEMES:
        window.choose_scheme(scheme)
        for key in ("catalog", "memory"):
            window.show_tab(key)
            save(window, folder / f"{key}-{scheme}.png")
        training = Training(micro_batch=4, activation_checkpointing="full")
        model = ModelChoice(id="Qwen/Qwen3-8B")
        window.workspace.apply("training", model=model, workload=training, gpu="h100-sxm5-80gb")
    window.show_tab("memory")
    window.findChild(Breakdown).open_term("logits")
    save(window, folder / "term-dark.png")
    draw_readme_catalog(window, folder)
    draw_readme_plans(window, folder)
    draw_readme_costs(window, folder)
    draw_readme_trace(window, folder)
    draw_readme_monitor(window, folder)


def draw_readme_catalog(window: "MainWindow", folder: Path) -> None:
    """Draw the replacements of two cards, two trainings side by side, and the market as a scatter plot."""
    tab = window.catalog()
    window.show_tab("catalog")
    window.choose_scheme("light")
    window.workspace.replace(sample_plans()["tuned-on-two"], None)
    tab.gpus.search("at least 48 GiB within 700 W under 10,000 USD")
    tab.sort_cards("bandwidth")
    best = tab.gpus.model.records[:3]
    tab.compare.add((*(f"accelerators:{row.id}@1" for row in best), "accelerators:rtx-3090@2"))
    tab.show_view("compare")
    wait_until(lambda: not tab.tasks.busy)
    save(window, folder / "catalog-replace-light.png")
    tab.compare.clear()
    window.workspace.replace(sample_plans()["adapted-on-eight"], None)
    tab.compare.add(("systems:dgx-a100-640gb", "accelerators:h100-sxm5-80gb@8"))
    wait_until(lambda: not tab.tasks.busy)
    save(window, folder / "catalog-compare-light.png")
    tab.compare.clear()
    tab.gpus.search("")
    window.choose_scheme("dark")
    tab.show_view("scatter")
    tab.setFocus()
    save(window, folder / "catalog-scatter-dark.png")
    tab.show_view("table")
    window.show_tab("memory")


def draw_readme_plans(window: "MainWindow", folder: Path) -> None:
    """Draw unequal cards separately (dark), and LoRA side by side with QLoRA (light)."""
    plans = sample_plans()
    window.tab.setFocus()
    window.workspace.replace(plans["unequal"], None)
    save(window, folder / "cards-dark.png")
    window.choose_scheme("light")
    compare_adapters(window, plans["lora"])
    save(window, folder / "compared-light.png")
    window.workspace.pin.put(None)


def draw_readme_costs(window: "MainWindow", folder: Path) -> None:
    """Draw a purchase that pays off within the horizon (light), hardware recommended for a run, and a service."""
    plans = sample_costs()
    tab = window.cost()
    window.choose_scheme("light")
    window.workspace.replace(plans["always"], None)
    wait_until(lambda: tab.curve.data is not None and tab.curve.data.is_drawn and bool(tab.curve.read_out))
    save(window, folder / "cost-even-light.png")
    window.workspace.replace(plans["run"], None)
    tab.choose_hardware()
    settle(window)
    if tab.dialog is not None:
        write_picture(tab.dialog, folder / "recommend-light.png")
        tab.dialog.close()
    panel = tab.serving
    panel.curve_section.set_open(True)
    window.workspace.replace(sample_services()["held"], None)
    wait_until(lambda: panel.simulation is not None and not window.tasks.busy)
    tab.results.verticalScrollBar().setValue(panel.y())
    save(window, folder / "serving-light.png")
    panel.curve_section.set_open(False)
    window.show_tab("memory")


def draw_readme_trace(window: "MainWindow", folder: Path) -> None:
    """Trace a ResNet-50 from a file, and draw its live memory in the light theme."""
    from planner import Target, TraceRequest, save_recording
    from planner.gui.memory.tab import MemoryTab
    from planner.trace.run import missing_packages_hint, trace

    tab = window.tab
    if missing_packages_hint() is not None or not isinstance(tab, MemoryTab):
        return
    copy = folder / "resnet.py"
    copy.write_bytes((Path(__file__).parent / "nets" / "convolutional.py").read_bytes())
    target = Target(kind="file", place=str(copy), name="resnet50")
    request = TraceRequest(target=target, task="training", batch=32, autocast="bf16", compute_capability="8.9")
    recording = folder / "resnet50.trace.json.gz"
    save_recording(recording, trace(request))
    window.choose_scheme("light")
    window.documents.open(recording)
    window.workspace.apply("card", gpu="rtx-4090")
    wait_until(lambda: tab.trace.result is not None)
    bar = tab.results.verticalScrollBar()
    bar.setValue(bar.maximum())
    save(window, folder / "trace-light.png")
    recording.unlink()
    copy.unlink()


def draw_readme_monitor(window: "MainWindow", folder: Path) -> None:
    """Draw the tab without a card, the demo while its cards wait and once they are hot, and a diagnosis opened."""
    window.choose_scheme("light")
    tab = window.monitor()
    wait_until(lambda: bool(tab.faults.texts) and known_seconds(tab.feed.history) > WATCHED_SECONDS)
    save(window, folder / "monitor-no-card-light.png")
    window.workspace.replace(sample_plans()["monitored"], None)
    tab.controller.show_demo()
    wait_until(lambda: not tab.feed.is_live and bool(tab.plan_strip.expected))
    save(window, folder / "monitor-light.png")
    tab.headline.open()
    settle(window)
    dialog = tab.controller.dialog
    if dialog is not None:
        save_with(window, dialog, folder / "monitor-diagnosis-light.png")
        dialog.close()
    window.choose_scheme("dark")
    tab.replay_bar.slider.setValue(HOT_SECONDS * 10)
    save(window, folder / "monitor-dark.png")
    tab.feed.go_live()


def known_seconds(history: "History") -> float:
    """Return the number of seconds in the monitored history."""
    return 0.0 if history.start is None or history.end is None else history.end - history.start


def save_with(window: "MainWindow", dialog: "QDialog", file: Path) -> None:
    """Write a picture of `window` with a dialog over it, at the dialog's position on the screen."""
    from PySide6.QtGui import QPainter

    picture, above = window.grab(), dialog.grab()
    painter = QPainter(picture)
    place = window.rect().center() - above.rect().center()
    painter.drawPixmap(place, above)
    painter.setPen(window.theme.color("border"))
    painter.drawRect(above.rect().translated(place))
    painter.end()
    picture.save(str(file))
    print(file)


def save(window: "MainWindow", file: Path) -> None:
    """Write a picture of `window` once it has settled, and print its path."""
    settle(window)
    write_picture(window, file)


def write_picture(shown: "QWidget", file: Path) -> None:
    """Write a picture of what is shown, and print its path."""
    shown.grab().save(str(file))
    print(file)


if __name__ == "__main__":
    from screenshots import main as main_of_module  # screenshot_states reads this module's LOOKS

    main_of_module()
