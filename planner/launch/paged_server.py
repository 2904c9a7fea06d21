"""Settings that servers with a paged cache have in common, the fraction of memory for that cache, and a benchmark."""

import math
from collections.abc import Iterator
from typing import Final

from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.launch.settings import OF_REQUESTS, LaunchFacts, Measurement, Setting, settings_from
from planner.launch.text import command_line
from planner.plan.logs.figures import request_tokens
from planner.plan.plan import Plan
from planner.units import GIB
from planner.workload.recipes.servers import Option
from planner.workload.software.registry import SOFTWARE, serving_support
from planner.workload.workload import Inference

_REQUESTS_EACH: Final = 8
"""Requests of the benchmark for each that runs at the same time, so that most of the run has all of them."""
_STEP: Final = 1_000
"""A fraction that has to be larger than the program's own is rounded up to 1/1000."""


def cache_fraction(facts: LaunchFacts, static_bytes: int) -> float | None:
    """Return the program's memory fraction, raised if its cache would be too small; None without a cache.

    `static_bytes` is what the fraction has to hold besides the cache.

    **Formula**: f · (static + cache of all sequences) / (static + cache that the estimate's fraction f leaves).

    Raises:
        SpecError: If the plan sets a fraction that is too small, or none is large enough.
    """
    pool, workload = facts.evaluation.memory.cache_pool, facts.inference
    own, name = serving_support(workload.profile), workload.profile or ""
    if pool is None:
        return None
    limit = getattr(workload.engine, own.sequence_limit) or workload.batch
    sequences = min(workload.batch, limit)
    if pool.sequences >= sequences:
        return pool.utilization
    each = pool.bytes / pool.sequences if pool.sequences else math.inf
    needed = pool.utilization * (static_bytes + each * sequences) / (static_bytes + pool.bytes or 1)
    planned = facts.evaluation.plan.workload
    assert isinstance(planned, Inference)
    is_set = own.memory_fraction in planned.engine.explicit_names()
    if is_set or needed >= 1:
        text = f"the cache of {sequences:,} sequences needs a fraction of {needed:.3g} in {SOFTWARE[name].title}"
        held = f"it has {pool.bytes / GIB:.2f} GiB at {pool.utilization:g}"
        raise SpecError(
            f"engine.{own.memory_fraction}", f"{text}, but {held}", "Take fewer sequences or a shorter context."
        )
    return math.ceil(needed * _STEP) / _STEP


def with_sequence_limit(plan: Plan) -> Plan:
    """Return `plan` with as many concurrent sequences as it has requests, unless it sets their number."""
    workload = plan.workload
    assert isinstance(workload, Inference)
    own = serving_support(workload.profile)
    engine = workload.engine if isinstance(workload.engine, own.settings) else own.settings()
    if getattr(engine, own.sequence_limit) is not None:
        return plan
    return plan.evolve(workload=workload.evolve(engine=engine.evolve(**{own.sequence_limit: workload.batch})))


def server_settings(options: tuple[Option, ...], workload: Inference) -> Iterator[Setting]:
    """Yield the settings of a table of options, `auto` for a cache in the compute precision, which every version has.

    The limit on sequences expresses the batch where it equals it, and the compute precision weights that are as stored.
    """
    is_automatic = workload.kv_cache == workload.compute
    limit = f"engine.{serving_support(workload.profile).sequence_limit}"
    for setting in settings_from(options, workload.replaced(kv_cache="auto") if is_automatic else workload):
        if setting.fields == (limit,) and setting.value == workload.batch:
            yield setting._replace(fields=(limit, "batch"))
        elif setting.fields == ("compute",) and workload.weights in (AS_STORED, None, workload.compute):
            yield setting._replace(comment="compute precision; weights as stored", fields=("compute", "weights"))
        else:
            yield setting
    if is_automatic:
        for option in options:
            if option.field == "kv_cache":
                yield Setting(option.key, "auto", "KV-cache precision: that of the computation", ("kv_cache",))


def unexpressed_fields(workload: Inference) -> dict[str, str]:
    """Return the fields that no server with a paged cache has a setting for, with the reasons.

    The batch is one of them unless it is the limit on sequences.
    """
    own, title = serving_support(workload.profile), SOFTWARE[workload.profile or ""].title
    reasons = {
        **OF_REQUESTS,
        "common_prefix": "requests bring it; the prefix cache is on by default",
        "attention": f"{title} chooses its kernels by the GPU",
        "weights": f"{title} takes the format from the checkpoint: name one in this format",
    }
    limit = getattr(workload.engine, own.sequence_limit)
    if workload.batch != limit:
        reasons["batch"] = f"clients decide how many requests they send; up to {limit} run at the same time"
    return reasons


def speed_measurement(facts: LaunchFacts, start: str, *bench: str) -> Measurement:
    """Return the benchmark of a running server: the words `bench`, with the requests of the plan; `start` precedes it.

    vLLM's and SGLang's benchmarks have the same options, and print the same words.
    """
    workload = facts.inference
    prompt, answer = request_tokens(workload)
    words = (
        *bench, "--dataset-name", "random", "--random-input-len", str(prompt), "--random-output-len", str(answer),
        "--max-concurrency", str(workload.batch), "--num-prompts", str(_REQUESTS_EACH * workload.batch),
    )  # fmt: skip
    return Measurement(
        "Speed: while the server runs",
        start + command_line(words),
        figures=(
            ("throughput", "Output token throughput (tok/s)"),
            *((("first-token", "Mean TTFT (ms)"),) if workload.batch == 1 else ()),
            ("output-token", "Mean TPOT (ms)"),
        ),
    )
