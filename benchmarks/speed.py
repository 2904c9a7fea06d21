"""Speed as ratios within one run, since machines differ and are shared.

    python benchmarks/speed.py [--runs N]

Prints each figure with its reference from the same run: the cold start of the window beside an empty pyqtgraph window,
the cold start of `gpu-planner fit` beside `from pydantic import BaseModel`, also where no byte code of GPU Planner may
be kept, as in many containers; likewise a report in each format; and beside a loop of 10,000 additions one
warm estimate, on one GPU and shared over several, the verdicts on the whole catalog, what is solved for, what would
help, and a keystroke in the catalog's search with 3,000 rows up to the repaint.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from tables import add_table_option, machine_note, write_table

if TYPE_CHECKING:
    from planner.plan.catalog import Catalog
    from planner.plan.plan import ModelChoice

Input = TypeVar("Input")

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

EMPTY_PLOT = """
import pyqtgraph
app = pyqtgraph.mkQApp()
window = pyqtgraph.PlotWidget()
window.resize(1280, 800)
window.show()
window.grab()
"""
PLANNER_WINDOW = """
from planner.gui.app import create
app, window = create([])
window.resize(1280, 800)
window.show()
window.grab()
"""
IMPORT_PYDANTIC = "from pydantic import BaseModel"
FIT = "from planner.__main__ import main; main(['fit', 'meta-llama/Llama-3.1-8B', '--gpu', 'RTX 4090'])"
REPORT = """
from planner.__main__ import main
plan = ["meta-llama/Llama-3.1-8B", "--profile", "vllm", "--batch", "32", "--gpu", "l40s", "--requests-per-day", "20000"]
main(["report", *plan, "--date", "2026-11-22", "-o", {!r}])
"""
ROWS = 3_000
PRINTED: list[list[str]] = []
"""The figures printed so far, as rows of the manual's table."""
_ROOT = Path(__file__).resolve().parent.parent
_COMPILING = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONPATH")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="cold starts of each kind (default 7)")
    add_table_option(parser)
    arguments = parser.parse_args()
    runs = arguments.runs
    print(f"{'what':52} {'median':>10} {'reference':>10} {'ratio':>7} {'aim':>8}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        keep_byte_code(home)
        window, plot = alternating(PLANNER_WINDOW, EMPTY_PLOT, runs)
        print_ratio("painted window / empty pyqtgraph window, CPU s", window, plot, "≤ 1.0")
        fit, pydantic = alternating(FIT, IMPORT_PYDANTIC, runs)
        print_ratio("gpu-planner fit / import of pydantic, CPU s", fit, pydantic, "≤ 2.5")
        with no_byte_code():
            fit, pydantic = alternating(FIT, IMPORT_PYDANTIC, runs)
        print_ratio("the same without byte code of the planner, CPU s", fit, pydantic, "≤ 4")
        print_reports(home, runs)
        print_warm()
        print_times()
        print_shared()
        print_solved()
        print_advised()
        print_keystroke()
    if arguments.table:
        write_printed("speed")


def keep_byte_code(folder: str) -> None:
    """Let each script find its modules compiled, as installers leave them: its first run, not counted, does it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder


@contextmanager
def no_byte_code() -> Iterator[None]:
    """Make each script compile the planner's modules again; libraries keep their installed byte code.

    A copy of the package is run, beside which nothing was ever compiled.
    """
    kept = {name: os.environ.get(name) for name in _COMPILING}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("planner", "catalog", "resources"):
            shutil.copytree(_ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        os.environ.pop("PYTHONPYCACHEPREFIX", None)
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": folder}
        yield
    for name, value in kept.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def alternating(first: str, second: str, runs: int) -> tuple[float, float]:
    """Return the median CPU seconds of two scripts in fresh processes, run in turns so that both have the same load."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs + 1):
        for script, found in zip((first, second), times, strict=True):
            found.append(cpu_seconds(script))
    return median(times[0][1:]), median(times[1][1:])


def cpu_seconds(script: str) -> float:
    """Return the user and system seconds that a fresh interpreter spends on `script`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_reports(folder: str, runs: int) -> None:
    """Print the time of `gpu-planner report` for a service with rent, purchase and launch settings, in each format."""
    for ending in ("html", "pdf", "md"):
        taken, pydantic = alternating(REPORT.format(f"{folder}/report.{ending}"), IMPORT_PYDANTIC, min(runs, 3))
        print_ratio(f"gpu-planner report, {ending} / import of pydantic, CPU s", taken, pydantic, "≤ 2 s")


def print_warm() -> None:
    """Print the time of a warm estimate, and of verdicts on the whole catalog, for workloads without cached results."""
    from planner import Inference, ModelChoice, Plan, Training, estimate_memory, load_catalog
    from planner.plan.evaluate import fits_by_gpu

    catalog = load_catalog()
    model = catalog.models.model("meta-llama/Llama-3.1-8B")
    gpu = catalog.hardware.gpu("rtx-4090")
    usable = catalog.hardware.usable_memory(gpu)
    for name, workloads in (
        ("inference", [Inference(batch=size + 1) for size in range(400)]),
        ("training", [Training(micro_batch=size + 1) for size in range(400)]),
    ):
        taken, loop = beside_loop(lambda workload: estimate_memory(model, workload, gpu, usable), workloads)
        print_beside(f"one warm estimate, {name} / a loop, µs", taken * 1e6, loop * 1e6, "≤ 200 µs")
    choice = ModelChoice(id="meta-llama/Llama-3.1-8B")
    plans = [Plan(model=choice, workload=Inference(batch=size + 1)) for size in range(400, 430)]
    taken, loop = beside_loop(lambda plan: fits_by_gpu(plan, catalog), plans)
    print_beside(f"verdicts on {len(catalog.hardware.gpus)} accelerators / a loop, ms", taken * 1e3, loop * 1e3, "")


def print_times() -> None:
    """Print one warm estimate of time, for workloads without cached results, with their defaults filled in."""
    from planner import Inference, Training, load_catalog
    from planner.performance.estimate import estimate_time
    from planner.workload.defaults import with_defaults

    catalog = load_catalog()
    model = catalog.models.model("meta-llama/Llama-3.1-8B")
    cards = ((catalog.hardware.gpu("h100-sxm5-80gb"), 8),)
    for name, kind, field in (("inference", Inference, "batch"), ("training", Training, "micro_batch")):
        workloads = [kind.model_validate({field: size + 1, "parallel": {}}) for size in range(400)]
        filled = [with_defaults(workload, model, 8) for workload in workloads]
        taken, loop = beside_loop(lambda workload: estimate_time(model, workload, cards), filled)
        print_beside(f"one warm time, {name} on 8 GPUs / a loop, µs", taken * 1e6, loop * 1e6, "≤ 300 µs")
    print_evaluated(catalog)


def print_evaluated(catalog: "Catalog") -> None:
    """Print one warm evaluation with its time, and a job on every card, for plans without cached results."""
    from datetime import date

    from planner import Inference, ModelChoice, Plan, evaluate
    from planner.plan.cost import job_by_gpu

    model = ModelChoice(id="meta-llama/Llama-3.1-8B")
    plans = [Plan(model=model, workload=Inference(batch=size), gpu="rtx-4090") for size in range(500, 700)]
    taken, loop = beside_loop(lambda plan: evaluate(plan, catalog).time, plans)
    print_beside("one warm evaluation with its time / a loop, µs", taken * 1e6, loop * 1e6, "≤ 800 µs")
    plans = [Plan(model=model, workload=Inference(batch=size)) for size in range(1, 7)]
    taken, loop = beside_loop(lambda plan: job_by_gpu(plan, catalog, date(2026, 11, 22)), plans)
    print_beside("a job on every GPU that fits / a loop, ms", taken * 1e3, loop * 1e3, "≤ 300 ms")


def print_shared() -> None:
    """Print the time of a warm estimate for each kind of parallelism, and for an image pipeline."""
    from planner import Inference, Training, estimate_memory, load_catalog
    from planner.workload.parallel import Parallel
    from planner.workload.workload import Workload

    catalog = load_catalog()
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    usable = catalog.hardware.usable_memory(gpu)
    both = Parallel(tensor=8, pipeline=4, zero=1)
    small, large = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"
    cases: tuple[tuple[str, str, int, Workload], ...] = (
        ("DDP", small, 8, Training()),
        ("FSDP", large, 64, Training(parallel=Parallel(zero=3))),
        ("ZeRO-2", small, 8, Training(parallel=Parallel(zero=2))),
        ("ZeRO-3, DeepSpeed", small, 8, Training(profile="deepspeed", parallel=Parallel(zero=3))),
        ("TP8", large, 8, Training(parallel=Parallel(tensor=8))),
        ("PP8", large, 8, Training(parallel=Parallel(pipeline=8))),
        ("PP8, 8 on the way", large, 8, Training(gradient_accumulation=8, parallel=Parallel(pipeline=8))),
        ("TP8·PP4·ZeRO-1", large, 64, Training(gradient_accumulation=8, parallel=both)),
        ("the same, Megatron", large, 64, Training(profile="megatron", gradient_accumulation=8, parallel=both)),
        ("vLLM, TP4", large, 4, Inference(profile="vllm", parallel=Parallel(tensor=4))),
        ("device map, 4 GPUs", large, 4, Inference(parallel=Parallel(pipeline=4))),
        ("SDXL", "stabilityai/stable-diffusion-xl-base-1.0", 1, Inference()),
    )
    for name, model, count, workload in cases:
        architecture = catalog.models.model(model)
        field = "micro_batch" if isinstance(workload, Training) else "batch"
        sizes = [workload.evolve(**{field: size + 1}) for size in range(200)]
        taken, loop = beside_loop(
            lambda one, of=architecture, on=count: estimate_memory(of, one, gpu, usable, on),
            sizes,
        )
        print_beside(f"one warm estimate, {name} / a loop, µs", taken * 1e6, loop * 1e6, "≤ 300 µs")


def print_solved() -> None:
    """Print the time of each solver, for plans without cached results."""
    from planner import Inference, ModelChoice, Training, load_catalog
    from planner.plan.plan import Plan
    from planner.plan.solve import fewest_cards, largest_that_fits, smallest_card
    from planner.workload.parallel import Parallel

    catalog = load_catalog()
    large, small = ModelChoice(id="meta-llama/Llama-3.1-8B"), ModelChoice(id="meta-llama/Llama-3.2-1B")
    huge = ModelChoice(id="meta-llama/Llama-3.1-405B")
    deepest = ModelChoice(id="deepseek-ai/DeepSeek-V3")
    reading = [
        Plan(model=large, workload=Inference(batch=n, context_length=999 + n), gpu="rtx-4090") for n in (1, 2, 3)
    ]
    learning = [
        Plan(model=small, workload=Training(micro_batch=n, sequence_length=999 + n), gpu="h100-sxm5-80gb")
        for n in (1, 2, 3)
    ]
    offloading = [
        Plan(model=huge, workload=Inference(weights="Q4_K_M", context_length=999 + n, gpu_layers=n), gpu="rtx-4090")
        for n in (1, 2, 3)
    ]
    serving = [
        Plan(model=deepest, workload=Inference(profile="vllm", batch=n, context_length=999 + n), gpu="h100-sxm5-80gb")
        for n in (1, 2, 3)
    ]
    sharing = [
        Plan(model=large, workload=spread.evolve(sequence_length=999 + n), gpu="h100-sxm5-80gb", count=64)
        for n in (1, 2, 3)
        for spread in (
            Training(parallel=Parallel(zero=3)),
            Training(profile="megatron", gradient_accumulation=8, parallel=Parallel(tensor=8, pipeline=4, zero=1)),
        )
    ]
    for name, plans, solve in (
        ("largest micro-batch, 64 GPUs", sharing, lambda plan: largest_that_fits(plan, catalog, "micro_batch")),
        ("longest sequence, 64 GPUs", sharing, lambda plan: largest_that_fits(plan, catalog, "sequence_length")),
        ("fewest GPUs, 64 to start from", sharing, lambda plan: fewest_cards(plan, catalog)),
        ("largest micro-batch", learning, lambda plan: largest_that_fits(plan, catalog, "micro_batch")),
        ("longest sequence", learning, lambda plan: largest_that_fits(plan, catalog, "sequence_length")),
        ("most at once", reading, lambda plan: largest_that_fits(plan, catalog, "batch")),
        ("longest context", reading, lambda plan: largest_that_fits(plan, catalog, "context_length")),
        ("fewest GPUs", learning, lambda plan: fewest_cards(plan, catalog)),
        ("smallest GPU", learning, lambda plan: smallest_card(plan, catalog)),
        ("most layers on the GPU", offloading, lambda plan: largest_that_fits(plan, catalog, "gpu_layers")),
        ("fewest GPUs, layers shared", offloading, lambda plan: fewest_cards(plan, catalog)),
        (f"fewest GPUs, {short(deepest)} in vLLM", serving, lambda plan: fewest_cards(plan, catalog)),
        (f"smallest GPU, {short(deepest)} in vLLM", serving, lambda plan: smallest_card(plan, catalog)),
        (f"longest context, {short(deepest)}", serving, lambda p: largest_that_fits(p, catalog, "context_length")),
    ):
        taken, loop = beside_loop(solve, plans)
        print_beside(f"{name} / a loop, ms", taken * 1e3, loop * 1e3, "≤ 20 ms")


def short(model: "ModelChoice") -> str:
    """Return the model's name without its owner."""
    return model.id.rpartition("/")[2]


def print_advised() -> None:
    """Print the time of advice for plans that need many changes."""
    from planner import Inference, ModelChoice, Training, advise, load_catalog
    from planner.plan.plan import Plan
    from planner.workload.workload import Workload

    catalog = load_catalog()
    cases: tuple[tuple[str, str, Workload], ...] = (
        ("full training", "meta-llama/Llama-3.2-1B", Training(micro_batch=8)),
        ("full training of a large model", "meta-llama/Llama-3.1-70B", Training(micro_batch=16)),
        ("vLLM", "meta-llama/Llama-3.1-8B", Inference(profile="vllm", batch=16)),
        ("llama.cpp", "meta-llama/Llama-3.1-70B", Inference(weights="Q4_K_M", batch=16)),
    )
    for name, model, workload in cases:
        field = "sequence_length" if isinstance(workload, Training) else "context_length"
        plans = [
            Plan(model=ModelChoice(id=model), workload=workload.evolve(**{field: 8_000 + length}), gpu="rtx-4090")
            for length in range(5)
        ]
        taken, loop = beside_loop(lambda plan: advise(plan, catalog), plans)
        print_beside(f"what would help, {name} / a loop, ms", taken * 1e3, loop * 1e3, "≤ 150 ms")


def beside_loop(action: Callable[[Input], object], inputs: Sequence[Input]) -> tuple[float, float]:
    """Return the median CPU seconds of `action` over `inputs`, and of `count_up` run in turns with `action`."""
    times: tuple[list[float], list[float]] = ([], [])
    for value in inputs:
        times[0].append(timed(lambda value=value: action(value)))
        times[1].append(timed(count_up))
    return median(times[0]), median(times[1])


def count_up() -> int:
    """Add up 10,000 numbers one by one, the reference for figures without another reference."""
    total = 0
    for number in range(10_000):
        total += number
    return total


def timed(action: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    started = time.process_time()
    action()
    return time.process_time() - started


def print_keystroke() -> None:
    """Print a keystroke in the catalog's search up to the repaint, with the catalog repeated to 3,000 rows."""
    from PySide6.QtWidgets import QApplication, QLineEdit

    from planner.gui.catalog.tab import CatalogTab
    from planner.gui.settings import SettingsStore
    from planner.gui.tasks import TaskRunner
    from planner.gui.theme import Theme
    from planner.gui.workspace import Workspace
    from planner.paths import state_dir
    from planner.plan.catalog import load_catalog

    app = QApplication([])
    settings = SettingsStore(state_dir() / "settings.json", app)
    workspace = Workspace(repeated(load_catalog()), settings, parent=app)
    theme = Theme(app, settings.current.scheme)
    theme.apply_style_sheet(app)
    tasks = TaskRunner()
    tab = CatalogTab(workspace, theme, tasks)
    tab.resize(1280, 700)
    tab.show()
    tab.refresh(workspace.evaluation)
    while not tab.gpus.lookups.jobs or tasks.busy:  # whose processor time would count as that of the keystrokes
        app.processEvents()
    search = next(field for field in tab.findChildren(QLineEdit) if field.placeholderText())

    def strike(text: str) -> None:
        search.setText(text)
        app.processEvents()

    texts = ("r", "rt", "rtx", "rtx ", "rtx 4", "rtx 40", "rtx 4", "rtx", "rt", "r", "") * 4
    taken, loop = beside_loop(strike, texts)
    print_beside(f"keystroke to repaint, {ROWS:,} rows / a loop, ms", taken * 1e3, loop * 1e3, "≤ 5 ms")


def repeated(catalog: "Catalog") -> "Catalog":
    """Return `catalog` with 3,000 accelerators, which repeat the bundled ones under other names."""
    from planner.hardware.catalog import HardwareCatalog

    known = catalog.hardware.gpus
    more = (
        known[row % len(known)].evolve(id=f"copy-{row}", name=f"{known[row % len(known)].name} {row}", aliases=())
        for row in range(ROWS - len(known))
    )
    return replace(catalog, hardware=HardwareCatalog(gpus=(*known, *more)))


def print_ratio(title: str, taken: float, reference: float, aim: str) -> None:
    """Print a figure with its reference, and keep it for the manual."""
    PRINTED.append([title, f"{taken:.3g}", f"{taken / reference:.2f}", aim])
    print(f"{title:52} {taken:10.3f} {reference:10.3f} {taken / reference:7.2f} {aim:>8}")


def print_beside(title: str, taken: float, loop: float, aim: str) -> None:
    """Print a figure with the reference loop of the same run, and keep it for the manual."""
    PRINTED.append([title, f"{taken:.3g}", f"{taken / loop:.2f}", aim])
    print(f"{title:52} {taken:10.1f} {loop:10.3g} {taken / loop:7.2f} {aim:>8}")


def write_printed(name: str) -> None:
    """Write the printed figures into the table `name` of the manual."""
    write_table("speed", name, ["what / reference, unit", "measured", "ratio", "aim"], PRINTED, note=machine_note())


if __name__ == "__main__":
    main()
