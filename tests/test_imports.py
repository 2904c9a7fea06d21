"""What a start of the command line, or of the window, must not load."""

import os
import subprocess
import sys

import pytest

HEAVY = ("PySide6", "shiboken6", "pyqtgraph", "torch", "transformers", "numpy")
FIT = "from planner.__main__ import main; main(['fit', 'meta-llama/Llama-3.1-8B', '--gpu', 'RTX 4090'])"
GPUS = "from planner.cli.main import main; main(['gpus', '4090'])"
WINDOW = "from planner.gui.app import create; app, window = create([]); window.grab()"
LATER = (
    *("planner.gui.catalog.tab", "planner.gui.cost.tab", "planner.gui.monitor.tab"),
    *("planner.gui.memory.devices", "planner.gui.memory.log_dialog", "planner.gui.memory.pinned_comparison"),
    *(
        "planner.gui.memory.trace.dialog",
        "planner.gui.memory.trace.evidence",
        "planner.gui.widgets.tables.record_table",
    ),
    *("planner.cost.renting.offer", "planner.monitor.supervisor", "planner.plan.advice.advise", "planner.plan.recipes"),
    *("planner.present.catalog.system_columns", "planner.trace.run"),
)
"""What a window that shows the sample plan has no use for yet, each worth five thousandths of a second or more."""
NO_NETWORK = """
import sys


def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        sys.exit(f"the network was used: {arguments}")


sys.addaudithook(refuse)
"""
API = "import planner; planner.evaluate; planner.load_catalog; planner.resolve_gpu"


@pytest.mark.parametrize("program", ["import planner", API, FIT, GPUS])
def test_neither_qt_nor_torch_nor_numpy_is_loaded(program):
    check = f"{NO_NETWORK}\n{program}\nprint('loaded:', *(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines()[-1] == "loaded:"


def test_the_window_loads_its_core_ahead_of_qt():
    program = "import planner.gui.app, planner.gui.memory.tab, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    behind = run.stdout[run.stdout.index(" PySide6 ") :].split()
    core = [name for name in behind if name.startswith("planner.") and not name.startswith("planner.gui")]
    assert core == []


@pytest.mark.parametrize(
    ("page", "later"), [("start", ("planner.gui.memory.tab", *LATER)), ("memory", LATER)], ids=("start", "memory")
)
def test_the_first_picture_waits_for_nothing_that_it_does_not_show(tmp_path, page, later):
    shown = f"{WINDOW}; window.show_tab({page!r}); window.grab()"
    unwanted = (*later, *HEAVY[2:])
    program = f"{NO_NETWORK}\n{shown}\nprint('loaded:', *(name for name in {unwanted} if name in sys.modules))"
    environment = {**os.environ, "GPU_PLANNER_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert run.stdout.splitlines()[-1] == "loaded:"
