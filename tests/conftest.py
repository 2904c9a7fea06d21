"""Shared set-up: no screen is needed, and no test touches the user's own folders."""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate, count
from pathlib import Path

import hypothesis
import psutil
import pytest
from fake_nvml_kit import fake_nvml, fake_vendors, near_nvml, near_vendors, nvml_library, vendors_library  # noqa: F401  # fixtures
from sshd_kit import ssh_server  # noqa: F401  # a fixture

from planner import records
from planner.paths import catalog_dir
from planner.plan.catalog import Catalog, load_catalog

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# The cores are shared by tests that run beside each other, not by the threads of one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is compiled is kept: each worker and each process that a test starts would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Collecting makes a million objects that all stay; looking for garbage among them took a quarter of its time.
gc.disable()

# What a script starts in the background ignores Ctrl+C, and so would the children whose end by it is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes, and how long it takes to make one, says how busy the machine is. The rest is as usual,
# which is the same examples each time where `CI` is set. `--hypothesis-profile thorough` tries more of them.
for _name, _examples in (("quick", 40), ("thorough", 90)):
    hypothesis.settings.register_profile(
        _name,
        hypothesis.settings(),
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        max_examples=_examples,
    )
hypothesis.settings.load_profile("quick")

_TESTS = Path(__file__).parent
_GOLDEN = _TESTS / "golden"
_CORE = (
    "core",
    "cost",
    "fleet",
    "hardware",
    "launch",
    "memory",
    "models",
    "monitor",
    "parsing",
    "performance",
    "plan",
    "present",
    "serving",
    "serving_runs",
    "trace",
    "workload",
)
_LONG = ("oracle", "walk", "fuzz", "sweep")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what is printed now")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Use all cores, but stay in this process for a few files: workers would need longer to start than these to run."""
    few = len(config.args) <= 3 and all(".py" in argument for argument in config.args)
    # One more than there are cores: every fifth second a worker waits, for a timer or a process that it started.
    return 0 if few else (psutil.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker begin with other folders: in a fresh checkout the first one to collect a file compiles it."""
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = Counter(file.relative_to(_TESTS).parts[0] for file in sorted(_TESTS.rglob("test_*.py")))
    share = files.total() * int(worker["workerid"].removeprefix("gw")) / worker["workercount"]
    begin = sum(read <= share for read in accumulate(files.values()))
    config.args = [str(_TESTS / place) for place in (*list(files)[begin:], *list(files)[:begin])]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of all workers into one order, and mark those that coverage is measured by."""
    items.sort(key=lambda item: item.path.parts)
    for item in items:
        folder, *below = item.path.relative_to(_TESTS).parts
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        is_long = is_property or any(map(item.get_closest_marker, _LONG))
        if folder in _CORE and (folder, below[0]) != ("trace", "worker") and not is_long:
            item.add_marker("unit")


def pytest_collection_finish() -> None:
    """Look for garbage only among what the tests make, and seldom: most of what they make needs no search."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def bundled_records_read_once() -> Iterator[None]:
    """Read each file of the bundled catalog once: its records are frozen, and each command of a test would read all."""
    bundled, read_file = catalog_dir(), records._read_record_file
    read_once = cache(read_file)

    def read(path: Path, adapter: object) -> object:
        return (read_once if bundled in path.parents else read_file)(path, adapter)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_read_record_file", read)
        yield


@pytest.fixture(scope="session")
def state_dirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield names of folders that do not exist yet: `tmp_path` lists all folders of earlier tests to make another."""
    home = tmp_path_factory.mktemp("homes")
    return (home / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_state_dir(state_dirs: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own empty state folder, and no width that the shell around it asks for."""
    folder = next(state_dirs)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("GPU_PLANNER_HOME", str(folder))
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a check that a text equals the file of that name in tests/golden."""

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"{path} differs; look, then run pytest --update-golden"

    return check


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Return the bundled catalog, read once; it does not change."""
    return load_catalog()
