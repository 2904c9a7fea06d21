"""The memory of training denoisers by formula against traces of diffusers' modules.

    python benchmarks/denoiser_accuracy.py [NAME …] [--trace] [--table]

Compares with the peaks in `tests/golden/denoiser-peaks.json`. `--trace` traces the named cases, or all, anew and
records their peaks, for which diffusers and peft must be installed.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from tables import add_table_option, write_table

import planner
from planner.memory.estimate import resolve_workload
from planner.memory.software import memory_of
from planner.memory.software.diffusers.components import text_tokens
from planner.models.architecture import Architecture
from planner.models.diffusion import find_networks
from planner.paths import catalog_dir
from planner.trace.analysis.live_memory import live_memory
from planner.trace.request import Target, TraceRequest
from planner.trace.run import trace
from planner.workload.training import Training

SCRIPT: Final = Path(__file__).parent / "scripts" / "train_denoiser.py"
RECORDED: Final = Path(__file__).parent.parent / "tests" / "golden" / "denoiser-peaks.json"
Case = dict[str, Any]


def resolved(case: Case, architecture: Architecture) -> Training:
    """Return the workload of a case with its defaults filled in, and only the denoiser on the GPU."""
    workload = Training.model_validate({**case["workload"], "precomputed": "all"})
    filled = resolve_workload(architecture, workload, 1).workload
    assert isinstance(filled, Training)
    return filled


def estimated_peak(case: Case, architecture: Architecture) -> int:
    """Return the peak by formula, without the framework's overhead."""
    workload = resolved(case, architecture)
    return memory_of(architecture, workload).timeline(architecture, workload).peak().total


def traced_peak(case: Case, architecture: Architecture) -> int:
    """Return the peak of a trace of the case's script."""
    records = json.loads((catalog_dir() / "models" / "diffusion.json").read_text(encoding="utf-8"))
    components = next(record for record in records if record["id"] == case["model"])["config"]["components"]
    config = components.get("unet") or components["transformer"]
    denoiser, _ = find_networks(architecture.components)
    text = text_tokens(architecture, denoiser)
    words = json.dumps([config, resolved(case, architecture).model_dump(mode="json"), text])
    target = Target(kind="script", place=str(SCRIPT), command_arguments=(words,))
    recording = trace(TraceRequest(target=target, task="training"))
    return max(live_memory(recording.allocations).totals)


def main() -> int:
    """Print the table, and return 1 if an error is above 3 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these cases")
    parser.add_argument("--trace", action="store_true", help="trace anew and record the peaks")
    add_table_option(parser)
    arguments = parser.parse_args()
    cases: list[Case] = json.loads(RECORDED.read_text(encoding="utf-8"))
    models = planner.load_catalog().models
    rows, worst = [], 0.0
    for case in cases:
        if arguments.names and case["name"] not in arguments.names:
            continue
        architecture = models.model(case["model"])
        if arguments.trace:
            case["peak_bytes"] = traced_peak(case, architecture)
        error = estimated_peak(case, architecture) / case["peak_bytes"] - 1
        worst = max(worst, abs(error))
        rows.append((case["name"], f"{case['peak_bytes'] / 1e9:.2f}", f"{100 * error:+.2f}"))
        print("{:60} {:>8} GB {:>7} %".format(*rows[-1]), flush=True)
    if arguments.trace:
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    if arguments.table:
        write_table("accuracy", "denoisers", ("training", "traced peak, GB", "error, %"), rows)
    return int(worst > 0.03)


if __name__ == "__main__":
    sys.exit(main())
