"""What a start of the command line must not load."""

import subprocess
import sys

import pytest

HEAVY = ("PySide6", "shiboken6", "pyqtgraph", "torch", "transformers", "numpy")
FIT = "from planner.cli.main import main; main(['fit', 'meta-llama/Llama-3.1-8B', '--gpu', 'RTX 4090'])"
GPUS = "from planner.cli.main import main; main(['gpus', '4090'])"
API = "import planner; planner.evaluate; planner.load_catalog; planner.resolve_gpu"


@pytest.mark.parametrize("program", ["import planner", API, FIT, GPUS])
def test_neither_qt_nor_torch_nor_numpy_is_loaded(program):
    check = f"{program}\nimport sys\nprint('loaded:', *(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines()[-1] == "loaded:"


def test_the_window_loads_its_core_ahead_of_qt():
    program = "import planner.gui.app, planner.gui.memory.tab, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    behind = run.stdout[run.stdout.index(" PySide6 ") :].split()
    core = [name for name in behind if name.startswith("planner.") and not name.startswith("planner.gui")]
    assert core == []
