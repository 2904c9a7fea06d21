"""Export to experiment trackers, timed and read back: `python benchmarks/trackers.py --trackers FOLDER [--minutes 60]`.

FOLDER is a virtual environment with the trackers themselves, which is made and filled by pip where it is missing. A
recording of eight cards with thirty quantities each, one sample a second, is

- exported to TensorBoard, timed beside the export of the same recording to CSV; read back by TensorBoard's own reader,
  every number and time compared, and its file cut at every byte of its first records;
- exported to MLflow and read back from its database; the names are compared with those that MLflow's own monitor of
  system metrics logs, which runs here on a driver that is made up;
- exported to W&B offline, and read back from the file that `wandb sync` would upload.

All exports run in network namespaces without any device but the loopback, where the system allows to make one.
"""

import argparse
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PACKAGES = (
    "tensorboard==2.21.0", "mlflow-skinny==3.17.2", "sqlalchemy>=2", "alembic>=1.10", "wandb==0.31.0", "numpy>=1.26",
    "nvidia-ml-py>=12.560", "platformdirs>=4.2", "psutil>=5.9", "pydantic>=2.10", "PyYAML>=6",
)  # fmt: skip
START = 1_700_000_000.25
CARDS, QUANTITIES = 8, 30
MOST_SECONDS = 5.0
MIB = 2**20
BLOCK = 32_768


def main() -> None:
    """Print what was measured and compared; end with 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trackers", type=Path, required=True, help="a virtual environment with the trackers")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--inside", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside is not None:
        inside(arguments.inside)
        return
    python = environment(arguments.trackers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hour.gpurec"
        print(f"{CARDS} cards × {QUANTITIES} quantities × {arguments.minutes} min at 1 Hz")
        path.write_bytes(recorded(arguments.minutes * 60))
        print(f"recording: {path.stat().st_size / MIB:.1f} MiB")
        is_quick = timed_exports(path, Path(folder))
        apart = without_network()
        print(f"exports without network: {'in a namespace of their own' if apart else 'not separated on this system'}")
        command = [*apart, str(python), __file__, "--trackers", str(arguments.trackers), "--inside", folder]
        code = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode
    sys.exit(code or not is_quick)


def environment(folder: Path) -> Path:
    """Return the Python of the virtual environment in `folder`, made and filled if it is missing."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def without_network() -> list[str]:
    """Return the words before a command that run it without network, none where the system does not allow it."""
    words = ["unshare", "--user", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        return []
    # W&B's own process is spoken to over the loopback.
    return [*words, "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh"]


def recorded(seconds: int) -> bytes:
    """Return the file of a recording with numbers that repeat nowhere, and times that are no whole seconds."""
    from io import BytesIO

    from planner.monitor.readings.events import Timestamp
    from planner.monitor.readings.inventory import Device, Inventory
    from planner.monitor.readings.metrics import DEVICE_METRICS
    from planner.monitor.readings.reading import Reading
    from planner.monitor.readings.sample import Sample
    from planner.monitor.recording.files import RecordingWriter
    from planner.monitor.recording.records import FORMAT_VERSION, RecordedMark, RecordingEnd, RecordingHeader

    metrics = [metric for metric in DEVICE_METRICS if metric.unit not in ("bits", "state")][:QUANTITIES]
    facts = {"memory_total_bytes": Reading(80 * 2**30)}
    cards = Inventory(
        "580.65.06", devices=tuple(Device(f"GPU-{n}", "NVIDIA H100 80GB HBM3", n, facts=facts) for n in range(CARDS))
    )
    stream = BytesIO()
    writer, now = RecordingWriter(stream), Timestamp(0.0, START)
    writer.put(RecordingHeader(FORMAT_VERSION, "a benchmark", START), now)
    writer.put(cards, now)
    for second in range(seconds):
        now = Timestamp(100.0 + second + 0.0137 * math.sin(second), START + second + 0.0137 * math.sin(second))
        devices = {
            f"GPU-{card}": {
                metric.name: Reading(
                    float(second // 600) if metric.unit == "count" else reading(metric.most or 1e9, second, card, place)
                )
                for place, metric in enumerate(metrics)
            }
            for card in range(CARDS)
        }
        writer.put(Sample(*now, devices), now)
        writer.flush()
    writer.put(RecordedMark(100.0, START, "first step"), now)
    writer.put(RecordingEnd(now.wall_seconds), now)
    writer.end()
    return stream.getvalue()


def reading(most: float, second: int, card: int, place: int) -> float:
    """Return a reading up to `most`, another one for each second, card and quantity."""
    return round(most * (0.5 + 0.4 * math.sin(second / 60 + card + place * 0.37)), 4)


def timed_exports(path: Path, folder: Path) -> bool:
    """Print how long the exports take, and return whether TensorBoard's is within its limit."""
    from planner.monitor.recording.export import export_csv
    from planner.monitor.recording.recording import read_recording
    from planner.plan.catalog import load_catalog
    from planner.present.trackers.tracking import export_to_tracker

    catalog = load_catalog()

    def to_tensorboard() -> object:
        shutil.rmtree(folder / "timed", ignore_errors=True)
        return export_to_tracker(read_recording(path), folder / "timed", "tensorboard", catalog)

    def to_csv() -> object:
        return export_csv(read_recording(path), folder / "timed.csv")

    ours, reference = [], []
    for _ in range(3):
        ours.append(seconds_of(to_tensorboard))
        reference.append(seconds_of(to_csv))
    best, beside = sorted(ours)[1], sorted(reference)[1]
    (written,) = (folder / "timed" / "hour").iterdir()
    print(
        f"to TensorBoard, with reading the recording: {best:.2f} CPU s, {written.stat().st_size / MIB:.1f} MiB; "
        f"to CSV: {beside:.2f} CPU s; ratio {best / beside:.2f}; aim ≤ {MOST_SECONDS:g} s: "
        f"{'held' if best <= MOST_SECONDS else 'MISSED'}"
    )
    return best <= MOST_SECONDS


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds of CPU time that `work` takes: others share the cores."""
    start = time.process_time()
    work()
    return time.process_time() - start


def inside(folder: Path) -> None:
    """Export and read back in the environment of the trackers; end with 1 if something differs."""
    from planner.monitor.recording.recording import read_recording
    from planner.plan.catalog import load_catalog
    from planner.present.trackers.tracking import export_to_tracker

    recording, catalog = read_recording(folder / "hour.gpurec"), load_catalog()
    failures = check_tensorboard(recording, folder / "timed" / "hour")
    for tracker, check in (("mlflow", check_mlflow), ("wandb", check_wandb)):
        start = time.perf_counter()
        run = export_to_tracker(recording, folder / "runs", tracker, catalog)
        print(f"to {tracker}: {run.values:,} values in {time.perf_counter() - start:.1f} s")
        failures += check(recording, run.place)
    print("\n".join(failures) if failures else "everything was read back as it was written")
    sys.exit(int(bool(failures)))


def expected_scalars(recording: Any) -> dict[str, list[tuple[float, float]]]:
    """Return the time and the number, as 32-bit float, of each point by its tag, derived from the recording alone."""
    from planner.monitor.readings.sample import Sample

    units = {"_bytes_per_s": ("_GB_per_s", 1e-9), "_bytes": ("_GiB", 2.0**-30), "_watts": ("_W", 1.0)}
    units |= {"_joules": ("_kJ", 1e-3), "_celsius": ("_C", 1.0), "_mhz": ("_MHz", 1.0), "_fraction": ("", 1.0)}
    found: dict[str, list[tuple[float, float]]] = {}
    energy: dict[str, float] = {}
    for sample in recording:
        if not isinstance(sample, Sample):
            continue
        for uuid, readings in sample.devices.items():
            for name, one in readings.items():
                value = one.value
                if name == "energy_joules":
                    value -= energy.setdefault(uuid, value) if value >= energy.get(uuid, value) else 0.0
                    if one.value < energy[uuid]:
                        energy[uuid] = 0.0
                ending = next((each for each in units if name.endswith(each)), "")
                unit, factor = units.get(ending, ("", 1.0))
                tag = f"gpu/{uuid.removeprefix('GPU-')}/{name.removesuffix(ending)}{unit}"
                (single,) = struct.unpack("<f", struct.pack("<f", value * factor))
                found.setdefault(tag, []).append((sample.wall_seconds, single))
    return found


def check_tensorboard(recording: Any, folder: Path) -> list[str]:
    """Return what TensorBoard's own reader reads otherwise than it was recorded."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    start = time.perf_counter()
    read = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    read.Reload()
    wanted, failures, points, latest = expected_scalars(recording), [], 0, 0.0
    for tag, values in wanted.items():
        scalars = read.Scalars(tag)
        points += len(scalars)
        latest = max(latest, *(abs(one.wall_time - at) for one, (at, _) in zip(scalars, values, strict=False)))
        if [(one.wall_time, one.value) for one in scalars] != values:
            failures.append(f"TensorBoard reads {tag} otherwise")
    if read.Tags()["scalars"] != list(wanted):
        failures.append("TensorBoard reads other tags")
    print(
        f"TensorBoard {version_of('tensorboard')} read {points:,} points of {len(wanted)} tags in "
        f"{time.perf_counter() - start:.1f} s; largest difference of a time {latest * 1000:g} ms; "
        f"texts: {', '.join(read.Tags()['tensors'])}"
    )
    return failures + check_cuts(folder)


def check_cuts(folder: Path) -> list[str]:
    """Return at which bytes of a cut file TensorBoard's reader does not read exactly the whole records before."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    (path,) = folder.iterdir()
    data = path.read_bytes()
    ends = [0]
    while len(ends) < 5:
        ends.append(ends[-1] + 16 + int.from_bytes(data[ends[-1] : ends[-1] + 8], "little"))
    near = {max(0, end + shift) for end in ends for shift in range(-8, 17)}
    cuts = sorted({*range(ends[3] + 200), *near})
    failures = []
    cut = folder.parent / "cut.tfevents"
    for length in cuts:
        cut.write_bytes(data[:length])
        whole = sum(end <= length for end in ends[1:])
        if (seen := len(list(EventFileLoader(str(cut)).Load()))) != whole:
            failures.append(f"cut at byte {length}, TensorBoard reads {seen} records, not {whole}")
    print(f"cut at {len(cuts):,} places, TensorBoard read every whole record before")
    return failures


def check_mlflow(recording: Any, database: Path) -> list[str]:
    """Return what MLflow's database holds otherwise than it was recorded, and names that MLflow does not log."""
    import sqlite3

    import mlflow.system_metrics.metrics.gpu_monitor as monitor

    monitor.pynvml = made_up_driver()
    sys.modules.setdefault("pynvml", monitor.pynvml)
    gpu = monitor.GPUMonitor()
    gpu.collect_metrics()
    theirs = {f"system/{name}" for name in gpu.aggregate_metrics()}
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select key, value, timestamp, step from metrics order by step").fetchall()
    keys = {key for key, *_ in rows}
    print(
        f"MLflow {version_of('mlflow-skinny')} logs {len(theirs)} names of a card, of which we wrote "
        f"{len(theirs & keys)}: {', '.join(sorted(theirs & keys))}"
    )
    failures = [f"MLflow's {name} is missing" for name in sorted(theirs - keys)]
    series = expected_scalars(recording)["gpu/0/power_W"]
    first, dated = next((value, stamp) for key, value, stamp, _ in rows if key == "system/gpu_0_power_usage_watts")
    merged = [(at, value) for at, value in series if at - series[0][0] < 10.0]
    mean = sum(value for _, value in merged) / len(merged)
    if abs(first - mean) > 1e-3 * mean:
        failures.append(f"MLflow holds a first mean of {first} W, not {mean} W")
    middle = 1000 * sum(at for at, _ in merged) / len(merged)
    if abs(dated - middle) > 1:
        failures.append(f"MLflow dates the first mean {dated} ms, not {middle:.1f} ms")
    return failures


def made_up_driver() -> Any:
    """Return what MLflow asks of the driver's library, for one card."""
    return SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(used=1, total=2),
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=50),
        nvmlDeviceGetPowerUsage=lambda _: 100_000,
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 200_000,
    )


def check_wandb(recording: Any, folder: Path) -> list[str]:
    """Return what W&B's file holds otherwise than it was recorded."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # waits until W&B's own process has written all
    (path,) = folder.glob("*.wandb")
    rows: list[dict[str, Any]] = []
    for data in logged(path.read_bytes()):
        one = wandb_internal_pb2.Record()
        one.ParseFromString(data)
        if one.WhichOneof("record_type") == "history":
            rows.append({item.key or item.nested_key[0]: json.loads(item.value_json) for item in one.history.item})
    rows = [row for row in rows if "gpu/0/powerWatts" in row]
    series = expected_scalars(recording)["gpu/0/power_W"]
    seen = [(row["time_unix_s"], row["gpu/0/powerWatts"]) for row in rows]
    is_equal = len(seen) == len(series) and all(
        abs(at - when) < 1e-3 and abs(value - watts) <= 1e-6 * watts
        for (at, value), (when, watts) in zip(seen, series, strict=True)
    )
    print(f"W&B {version_of('wandb')} holds {len(rows):,} rows of {len(rows[0]) if rows else 0} values")
    return [] if is_equal else ["W&B holds other readings of power"]


def logged(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log of LevelDB, the format of W&B's files after their first seven bytes."""
    at, parts = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no header begins in the last bytes of a block
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    from importlib.metadata import version

    return version(package)


if __name__ == "__main__":
    main()
