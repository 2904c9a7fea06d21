"""Memory of a headless monitor: `python benchmarks/monitor_growth.py [--cards 8] [--interval 0.1] [--minutes 10]`.

`gpu-planner monitor --json` runs with the cards of the tests' own library; once in ten seconds its memory and that of
its sampler are read. What both hold after the first minute is the base of the growth.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fake_nvml"))
from fake_nvml_kit import FakeNvml, build
from monitor import busy_card, busy_processes, quiet

STEP_SECONDS = 10.0
SETTLED_SECONDS = 60.0
MOST_GROWTH_MIB = 1.0


def main() -> int:
    """Print the memory of both processes every minute, and their growth after the first; 1 if it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, busy_processes(arguments.cards) as pids:
        fake = FakeNvml(Path(folder), build(Path(folder) / "library"))
        fake.say(*(busy_card(number, pid) for number, pid in enumerate(pids)))
        command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", str(arguments.interval)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=quiet(fake)) as process:
            try:
                growth = measured_growth_mib(psutil.Process(process.pid), arguments.minutes * 60)
            finally:
                process.terminate()
    print(f"growth after the first minute: {growth:.2f} MiB (at most {MOST_GROWTH_MIB:g})")
    return int(growth >= MOST_GROWTH_MIB)


def measured_growth_mib(process: psutil.Process, seconds: float) -> float:
    """Return by how much process and sampler grow together from the end of the first minute on, in MiB."""
    began, settled, both = time.monotonic(), 0.0, 0.0
    print(f"{'seconds':>8}{'command MiB':>13}{'sampler MiB':>13}")
    while (elapsed := time.monotonic() - began) < seconds:
        time.sleep(STEP_SECONDS)
        elapsed += STEP_SECONDS
        own, *children = (one.memory_info().rss / 2**20 for one in (process, *process.children()))
        both = own + sum(children)
        if not settled and elapsed >= SETTLED_SECONDS:
            settled = both
        print(f"{elapsed:8.0f}{own:13.2f}{sum(children):13.2f}", flush=True)
    return both - settled


if __name__ == "__main__":
    sys.exit(main())
