"""Formulas against traces of networks and options that nobody chose: both are drawn at random.

    python benchmarks/formula_accuracy.py [--cases N] [--seed S] [--only FAMILY …] [--traces FILE] [--check] [--table]

Each case is a network of a family that has a reader (`sampled_networks.py`) and a workload: training with all
parameters, some of them or adapters, or answers, with their formats, attention, checkpoints, optimizer and lengths. The
estimated peak is put beside the peak of the trace of transformers' own network, and parameters beside those that it
builds. Prints the cases that are furthest off, by part, and the errors by kind of network and by option. `--traces`
keeps traced figures in a file, from which the next call takes them. `--check` ends with 1 if the aim is missed: a
median of 1 %, nine of ten within 5 %, every count of parameters exact. Networks with recurrent states are listed only:
their formulas are of the kernels that a card runs, in whose place a trace runs PyTorch's operators.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from sampled_networks import FAMILIES, Fields, drawn_config
from tables import add_table_option, write_table

from planner.memory.estimate import fullest_timeline
from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.plan import ModelChoice, Plan
from planner.plan.trace_request import request_of_plan
from planner.trace.analysis.memory import facts_of
from planner.trace.request import TraceRequest
from planner.units import MIB
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training
from planner.workload.workload import Inference

_MEDIAN, _NINE_OF_TEN = 0.01, 0.05
_WORST = 20
_ANSWERING = ("dense", "experts", "states")
_TRAINED = 0.65
"""Share of the networks that can answer which are trained instead."""
_STEPS = 64
"""Tokens of networks with states, whose recurrence transformers runs token by token where no kernel is installed."""
_LASTING = {
    "parameters": "weights",
    "adapters": "weights",
    "buffers": "weights",
    "gradients": "gradients",
    "optimizer_states": "optimizer",
    "kv_cache": "cache",
}
_TERMS = {
    "weights": "weights",
    "adapters": "weights",
    "gradients": "gradients",
    "optimizer_states": "optimizer",
    "kv_cache": "cache",
    "state": "cache",
}


class Case(NamedTuple):
    """A network and what it is asked to do."""

    family: str
    config: Fields
    workload: Training | Inference

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options by which errors are listed."""
        asked = self.workload
        found = [FAMILIES[self.family], f"attention {asked.attention}", asked.compute]
        if isinstance(asked, Inference):
            return (*found, "answers")
        found += [asked.optimizer, f"checkpointing {asked.activation_checkpointing}"]
        return (*found, "some parameters" if asked.trainable else f"method {asked.method}")


class Figures(NamedTuple):
    """Parameters, and the bytes at the peak by part."""

    parameters: int
    parts: dict[str, int]
    phase: str

    @property
    def peak(self) -> int:
        """Return the peak in bytes."""
        return sum(self.parts.values())


class Compared(NamedTuple):
    """A case with its figures by the formulas and by the trace."""

    number: int
    case: Case
    estimated: Figures
    traced: Figures

    @property
    def error(self) -> float:
        """Return the signed error of the estimated peak."""
        return self.estimated.peak / self.traced.peak - 1

    def line(self) -> str:
        """Return the case, its error, and by how much of the peak each part is off."""
        parts = sorted(self.estimated.parts.keys() | self.traced.parts.keys())
        off = {one: self.estimated.parts.get(one, 0) - self.traced.parts.get(one, 0) for one in parts}
        shown = ", ".join(f"{one} {size / self.traced.peak:+.1%}" for one, size in off.items() if size)
        counted = self.estimated.parameters - self.traced.parameters
        asked = self.case.workload
        length = asked.prompt_length if isinstance(asked, Inference) else asked.sequence_length
        batch = asked.batch if isinstance(asked, Inference) else asked.micro_batch
        return (
            f"{self.number:4} {self.error:+7.2%} {self.case.family:22} {self.traced.peak / MIB:8.1f} MiB "
            f"{batch}x{length} {', '.join(self.case.options[1:])}: {shown or 'nothing'} "
            f"[{self.estimated.phase} | {self.traced.phase}]{f'; parameters {counted:+,}' if counted else ''}"
        )


def drawn_case(seed: str, number: int, families: Sequence[str]) -> Case:
    """Return the case of this number.

    Raises:
        ValueError: If transformers refuses the network that was drawn.
    """
    draw = Random(f"{seed}/{number}")
    family = families[number % len(families)]
    config = drawn_config(family, draw)
    kind = FAMILIES[family]
    if kind in _ANSWERING and draw.random() >= _TRAINED:
        return Case(family, config, _drawn_answers(kind, draw))
    return Case(family, config, _drawn_training(kind, draw))


def _drawn_training(kind: str, draw: Random) -> Training:
    length = 64 * draw.randint(2, 12) if kind != "states" else _STEPS
    method = draw.choices(("full", "lora", "some"), (6, 3, 1 if kind != "encoder-decoder" else 0))[0]
    choices: dict[str, Any] = {
        "compute": draw.choice(("bf16", "amp-bf16", "amp-bf16", "amp-fp16", "fp32")),
        "attention": draw.choice(("sdpa", "sdpa", "sdpa", "eager")),
        "activation_checkpointing": draw.choice(("none", "none", "full")),
        "optimizer": draw.choice(("adamw", "adamw", "sgd", "sgd-momentum", "adafactor")),
        "micro_batch": draw.choice((1, 2, 3, 4, 8)),
        "gradient_accumulation": draw.choice((1, 1, 2)),
        "sequence_length": None if kind == "vision" else length,
        "optimizer_step": None,
    }
    if method == "lora":
        # The gradient scaler of fp16 refuses gradients in 16 bits.
        dtype = "fp32" if choices["compute"] == "amp-fp16" else draw.choice(("fp32", "bf16"))
        adapters = Lora(rank=draw.choice((8, 16, 64)), dropout=draw.choice((0.0, 0.1)), adapter_dtype=dtype)
        choices |= {"method": "lora", "lora": adapters}
    elif method == "some":
        choices |= {"trainable": ("layers.1",)}
    return Training.model_validate(choices)


def _drawn_answers(kind: str, draw: Random) -> Inference:
    dtype = draw.choice(("bf16", "bf16", "fp16", "fp32"))
    prompt = 64 * draw.randint(2, 24) if kind != "states" else _STEPS
    return Inference(
        weights=dtype,
        compute=dtype,
        kv_cache=dtype,
        attention=draw.choice(("sdpa", "sdpa", "eager")),
        batch=draw.choice((1, 2, 4, 8)),
        prompt_length=prompt,
        context_length=prompt + 3,
    )


def estimated(case: Case, architecture: Architecture) -> Figures:
    """Return what the formulas say of `case`."""
    workload = with_defaults(case.workload, architecture, 1)
    snapshots = fullest_timeline(architecture, workload).snapshots
    peak = max((one for one in snapshots if one.name != "load"), key=lambda one: one.total)
    parts: dict[str, int] = defaultdict(int)
    for term in peak.terms:
        parts[_TERMS.get(term.name, "passing")] += term.bytes
    return Figures(architecture.parameters, dict(parts), peak.name)


def traced(request: TraceRequest) -> Figures:
    """Return what the trace of `request` says.

    Raises:
        PlannerError: If the network cannot be traced.
    """
    facts = facts_of(recorded(request))
    parts: dict[str, int] = defaultdict(int)
    # The network is built with a head that is tied afterwards, which a loaded one never has.
    peak = max((one for one in facts.phases if one.name != "load"), key=lambda one: one.bytes)
    for share in peak.shares:
        parts[_LASTING.get(share.category, "passing")] += share.bytes
    adapters = facts.parameters if request.lora is None else facts.parameters - facts.trainable_parameters
    return Figures(adapters, dict(parts), f"{peak.name}, {peak.explanation}")


def recorded(request: TraceRequest) -> Any:
    """Return the recording of `request`, made in this process with the shape rules of the traces before it."""
    from planner.trace.worker.fake_tensors import values
    from planner.trace.worker.job import record_trace

    # Each trace makes rules of its own; an operator's shapes are the same in every network.
    if not _RULES:
        _RULES.append(values.ShapeRules())
        values.ShapeRules = lambda: _RULES[0]  # type: ignore[assignment,misc]
    return record_trace(request, lambda *_: None)


_RULES: list[Any] = []


def request_of(case: Case, catalog: Catalog, folder: Path) -> TraceRequest:
    """Return the trace request that checks the estimate of `case`.

    Raises:
        PlannerError: If the case cannot be traced.
    """
    path = folder / "config.json"
    path.write_text(json.dumps(case.config, default=str), encoding="utf-8")
    choice = ModelChoice.of_file(case.family, read_config(case.config, case.family), path)
    return request_of_plan(Plan(model=choice, workload=case.workload), catalog)


def compare_all(numbers: Iterable[int], seed: str, families: Sequence[str], file: Path | None) -> list[Compared]:
    """Return the cases of these numbers that can be compared; the others are printed with the reason.

    Traced figures are taken from `file`, and kept there.
    """
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else {}
    catalog, compared = load_catalog(), []
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            try:
                case = drawn_case(seed, number, families)
                architecture = read_config(case.config, case.family)
                mine = estimated(case, architecture)
                request = request_of(case, catalog, Path(folder))
                key = request.model_dump_json()
                if key not in kept:
                    kept[key] = traced(request)
                    if file:
                        file.write_text(json.dumps(kept), encoding="utf-8")
                compared.append(Compared(number, case, mine, Figures(*kept[key])))
                print(compared[-1].line(), flush=True)
            except Exception as error:  # noqa: BLE001  # networks fail in many ways at sizes that do not fit together
                print(f"{number:4} not compared: {families[number % len(families)]}: {_first_line(error)}", flush=True)
    return compared


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[-200:]


def rows_by_option(compared: Sequence[Compared]) -> list[list[str]]:
    """Return the rows of the table: errors of all cases, and of those with each option."""
    groups: dict[str, list[float]] = {"all but states": []}
    for one in compared:
        kind, *options = one.case.options
        for option in (kind,) if kind == "states" else ("all but states", kind, *options):
            groups.setdefault(option, []).append(abs(one.error))
    return [
        [name, str(len(sizes)), f"{statistics.median(sizes):.2%}", f"{_share_within(sizes):.0%}", f"{max(sizes):.1%}"]
        for name, sizes in groups.items()
    ]


def _share_within(sizes: Sequence[float]) -> float:
    return sum(size <= _NINE_OF_TEN for size in sizes) / len(sizes)


def main() -> int:
    """Print the table and the worst cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=len(FAMILIES), help="how many are drawn")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", default="1", help="another seed draws other cases")
    parser.add_argument("--only", nargs="+", metavar="FAMILY", choices=FAMILIES, help="only these model types")
    parser.add_argument("--traces", type=Path, metavar="FILE", help="keep traced figures here")
    parser.add_argument("--check", action="store_true", help="end with 1 if the aim is missed")
    add_table_option(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    started = time.perf_counter()
    numbers = range(arguments.first, arguments.first + arguments.cases)
    compared = compare_all(numbers, arguments.seed, arguments.only or list(FAMILIES), arguments.traces)
    worst = sorted(compared, key=lambda one: -abs(one.error))[:_WORST]
    print("\nFurthest off:", *[one.line() for one in worst], "", sep="\n")
    header = ["drawn networks", "cases", "median error", "within 5%", "worst"]
    rows = rows_by_option(compared)
    for row in (header, *rows):
        print(f"{row[0]:28} {' '.join(f'{cell:>12}' for cell in row[1:])}")
    print(f"{len(compared)} of {arguments.cases} compared in {time.perf_counter() - started:.0f} s")
    if arguments.table:
        write_table("accuracy", "formulas", header, rows)
    sizes = [abs(one.error) for one in compared if FAMILIES[one.case.family] != "states"]
    counts = all(one.estimated.parameters == one.traced.parameters for one in compared)
    met = counts and statistics.median(sizes) <= _MEDIAN and _share_within(sizes) >= 0.9
    return int(arguments.check and not met)


if __name__ == "__main__":
    sys.exit(main())
