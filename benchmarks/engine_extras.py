"""Published figures of drafts, adapters, caches in RAM and several models on a GPU, beside what is estimated.

    python benchmarks/engine_extras.py [--table]

Each source names its figure. Those of the first table set the usual acceptance of drafts (the median of each kind),
none of the others sets a constant. With `--table` rows are Markdown, as in the manual.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.memory.inference.engine import served_adapters_term
from planner.models.drafts import with_draft
from planner.performance.inference.request import decoding_step_time, prompt_time
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.service_simulation import deploy_evaluated
from planner.plan.shared_gpus import share_gpus
from planner.serving.deployment import ServingSetup
from planner.workload.speculation import DRAFTS, Speculation
from planner.workload.workload import Inference

EAGLE = "SafeAILab/EAGLE README.md"
HEADS = (
    ("meta-llama/Llama-2-7b-hf", 0.24), ("meta-llama/Llama-2-13b-hf", 0.37), ("meta-llama/Llama-2-70b-hf", 0.99),
    ("meta-llama/Meta-Llama-3-8B", 0.25), ("Qwen/Qwen2-7B", 0.26), ("Qwen/Qwen2-72B", 1.05),
)  # fmt: skip
CHECKS = (
    ("model", "Qwen3-1.7B with Qwen3-0.6B, code editing, at least", 2.8, "vllm test_spec_decode.py, 2026-11"),
    ("eagle", "Llama-3.1-8B, MT-Bench", 2.29, "vllm-project/vllm#20780, 2025-07-10"),
    *(
        ("eagle", f"Llama-3.1-8B, {task}", tokens, "SpecDecode-Bench/simulator@2fdccbd, counted in its data")
        for task, tokens in (("ShareGPT", 2.25), ("GSM8K", 2.39), ("CNN/DailyMail", 2.33), ("InstructCoder", 2.35))
    ),
    ("eagle3", "Llama-3.1-8B, MT-Bench", 2.79, "vllm-project/vllm#20780, 2025-07-10"),
    *(
        ("eagle3", f"gpt-oss-20b, {task}", tokens, "blog.vllm.ai/2026/03/13/p-eagle")
        for task, tokens in (("HumanEval", 2.65), ("SPEED-Bench", 2.24), ("MT-Bench", 2.7))
    ),
    *(
        ("ngram", f"Llama-3.1-8B, {task}", tokens, "SpecDecode-Bench/simulator@2fdccbd, counted in its data")
        for task, tokens in (("ShareGPT", 1.39), ("GSM8K", 1.16), ("CNN/DailyMail", 1.33), ("InstructCoder", 2.03))
    ),
)  # fmt: skip
"""Tokens that a check of three drafted tokens yields: kind of draft, model and texts, tokens, source."""
VLLM_TABLE = "vllm-project/vllm#20780, one request, MT-Bench; the GPU is not named, the author's other runs are on H100"
STEPS = {
    "eagle": {2: (2.1, 4.37), 3: (2.29, 4.29), 7: (2.47, 5.2)},
    "eagle3": {2: (2.36, 4.32), 3: (2.79, 4.09), 7: (3.54, 4.29)},
}
"""Drafted tokens, with what a check yields and milliseconds for a token."""
PAPER = "EAGLE-3, arXiv 2503.01840, SGLang on H100, MT-Bench, trees of drafts"
QWEN = "Tengyunw/qwen3_8b_eagle3, SGLang on H200, trees of drafts"


class Figure(NamedTuple):
    """A published figure, what is estimated for it, and the source."""

    what: str
    published: float
    ours: float
    source: str


def accepted(tokens: float, drafted: int) -> float:
    """Return the share of `drafted` tokens that is accepted where a check yields `tokens`."""
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        share = (low + high) / 2
        found = Speculation(method="ngram", tokens=drafted, acceptance=share).expected_tokens
        low, high = (share, high) if found < tokens else (low, share)
    return round(low, 3)


def checks() -> Iterator[Figure]:
    """Yield the share of drafted tokens that each source has accepted, beside the usual one of its kind."""
    for kind, what, tokens, source in CHECKS:
        title, usual = DRAFTS[kind].title, DRAFTS[kind].acceptance
        yield Figure(f"{title}: {what}, {tokens:g} tokens of a check", accepted(tokens, 3), usual, source)
    source = "DeepSeek-V3, arXiv 2412.19437, section 5.4.3, 2024-12: 85 to 90 % of second tokens"
    yield Figure(f"{DRAFTS['mtp'].title}: DeepSeek-V3", 0.85, DRAFTS["mtp"].acceptance, source)


def figures(catalog: Catalog) -> Iterator[Figure]:
    """Yield each published figure with its estimate."""
    for name, billions in HEADS:
        model = catalog.models.model(catalog.models.ids_written_as(name)[0])
        head = with_draft(model, "eagle").draft
        assert head is not None
        yield Figure(f"EAGLE head of {name.partition('/')[2]}, 10⁹ parameters", billions, head.parameters / 1e9, EAGLE)
    deepseek = with_draft(catalog.models.model("deepseek-ai/DeepSeek-V3"), "mtp").draft
    assert deepseek is not None
    source = "deepseek-ai/DeepSeek-V3 README_WEIGHTS.md"
    yield Figure("MTP layer of DeepSeek-V3, 10⁹ parameters", 11.5, deepseek.parameters / 1e9, source)
    for model_id, gpu, plain, drafted, source in (
        ("meta-llama/Llama-3.1-8B", "h100-sxm5-80gb", 158.34, 373.25, PAPER),
        ("Qwen/Qwen3-8B", "h200-sxm-141gb", 187.0, 365.0, QWEN),
    ):
        name = model_id.partition("/")[2]
        yield Figure(f"{name}, tokens/s of one request", plain, speed(catalog, model_id, gpu), source)
        head = {"method": "eagle3", "tokens": 5, "acceptance": 0.7}
        ours = speed(catalog, model_id, gpu, speculation=head)
        yield Figure(f"{name} with EAGLE-3, 0.7 of 5 tokens accepted, tokens/s", drafted, ours, source)
    yield from stated_acceptance(catalog)
    batch = {"batch": 128, "parallel": {"tensor": 8}, "count": 8}
    slow, fast = (
        speed(catalog, "deepseek-ai/DeepSeek-V3", "h200-sxm-141gb", **batch, **more)
        for more in ({}, {"speculation": {"method": "mtp", "acceptance": 0.875}})
    )
    source = "DeepSeek-V3, arXiv 2412.19437, section 5.4.3: 85 to 90 % accepted"
    yield Figure("DeepSeek-V3 with its own layer, times as fast", 1.8, fast / slow, source)
    adapters = Inference(profile="vllm", adapters={"slots": 1, "targets": ("q_proj", "v_proj")})
    llama = catalog.models.model(catalog.models.ids_written_as("meta-llama/Llama-2-7b-hf")[0])
    slot = served_adapters_term(llama, adapters, 8, 1, "")
    assert slot is not None
    yield Figure("LoRA of rank 8 on q_proj and v_proj of Llama 2 7B, parameters", 4_194_304, slot.bytes, "PEFT")
    yield from cache_figures(catalog)
    yield from beside_figures(catalog)


def stated_acceptance(catalog: Catalog) -> Iterator[Figure]:
    """Yield speeds with drafts in sources that state what a check yields, beside the speed without."""
    model, request = "meta-llama/Llama-3.1-8B", {"profile": "vllm", "context_length": 384}
    plain = speed(catalog, model, "h100-sxm5-80gb", **request)
    yield Figure("Llama-3.1-8B, ms for a token", 7.07, 1000 / plain, VLLM_TABLE)
    for kind, rows in STEPS.items():
        for drafted, (tokens, milliseconds) in rows.items():
            draft = {"method": kind, "tokens": drafted, "acceptance": accepted(tokens, drafted)}
            ours = 1000 / speed(catalog, model, "h100-sxm5-80gb", speculation=draft, **request)
            what = f"the same with {DRAFTS[kind].title}, {drafted} drafted tokens, {tokens} of a check"
            yield Figure(what, milliseconds, ours, VLLM_TABLE)
    source = "blog.vllm.ai/2026/05/11, one request on 8 B300, about 90 % accepted: 125 and 234 tokens/s"
    cards = {"parallel": {"tensor": 8}, "count": 8, "profile": "vllm"}
    slow, fast = (
        speed(catalog, "deepseek-ai/DeepSeek-V3.2", "b300-sxm-288gb", **cards, **more)
        for more in ({}, {"speculation": {"method": "mtp", "acceptance": 0.9}})
    )
    yield Figure("DeepSeek-V3.2 with its own layer, times as fast", 234 / 125, fast / slow, source)


def beside_figures(catalog: Catalog) -> Iterator[Figure]:
    """Yield what is in use on a card where a second model is loaded beside a first one that serves."""
    source = "vllm-project/vllm#10533, A100 80 GB, vLLM 0.6.4: initial_memory_usage of the second"
    first, second = (
        Plan(
            model=ModelChoice(id=f"Qwen/Qwen2.5-{size}B"),
            gpu="a100-sxm4-80gb",
            workload=Inference(
                profile="vllm",
                weights="gptq4-128",
                context_length=16_384,
                engine={"memory_utilization": share, "enforce_eager": True},
            ),
        )
        for size, share in ((72, 0.75), (14, 0.2))
    )
    shared = share_gpus(second, [first], catalog)
    memory = evaluate(shared.plan, catalog).memory
    loaded = sum(each.bytes for each in memory.terms if each.name in ("weights", "framework_overhead"))
    what = "Qwen2.5-14B-GPTQ-Int4 loaded beside Qwen2.5-72B-GPTQ-Int4 at 0.75, GiB in use"
    yield Figure(what, 68.01, (shared.neighbours[0].held_bytes + loaded) / 2**30, source)


def cache_figures(catalog: Catalog) -> Iterator[Figure]:
    """Yield the size of a block of vLLM's cache, and how much faster RAM gives the first token than the card."""
    blog = "blog.vllm.ai/2026/01/08/kv-offloading-connector, Llama 3.1 8B, H100: 2 to 22 times, by the prompt"
    workload = Inference(profile="vllm", context_length=4096, cache_in_ram_bytes=2**34)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="h100-sxm5-80gb", workload=workload)
    evaluation = evaluate(plan, catalog)
    pages = evaluation.memory.term("kv_cache")
    assert pages is not None
    block = next(float(symbol.value) for symbol in pages.symbols if symbol.name == "g")
    yield Figure("block of 16 tokens in vLLM's cache, MiB", 2.0, block / 2**20, blog)
    found = deploy_evaluated(evaluation, ServingSetup())
    assert not isinstance(found, str)
    for tokens, published in ((500, 2.0), (90_000, 22.0)):
        brought = tokens * found.ram_token_seconds + decoding_step_time(found.served, 1, tokens).seconds
        times = prompt_time(found.served, 1, tokens).seconds / brought
        yield Figure(f"cache of {tokens:,} tokens from RAM, times as fast as a prompt", published, times, blog)


def speed(catalog: Catalog, model: str, gpu: str, count: int = 1, **fields: object) -> float:
    """Return the tokens a second of requests in SGLang."""
    fields = {"prompt_length": 128, "context_length": 640, "weights": None} | fields
    workload = Inference(**{"profile": "sglang", **fields})
    time = evaluate(Plan(model=ModelChoice(id=model), gpu=gpu, count=count, workload=workload), catalog).time
    assert time is not None
    assert time.tokens_per_second is not None
    return time.tokens_per_second


def main() -> None:
    """Print the figures as text or as a table of the manual."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    is_table = parser.parse_args().table
    print_rows(checks(), "usual", is_table=is_table)
    print_rows(figures(load_catalog()), "estimated", is_table=is_table)


def print_rows(rows: Iterable[Figure], name: str, *, is_table: bool) -> None:
    """Print figures as text or as a table of the manual, whose third column is called `name`."""
    if is_table:
        print(f"\n| figure | published | {name} | source |\n|---|---|---|---|")
    for what, published, ours, source in rows:
        row = (what, f"{published:,.7g}", f"{ours:,.7g}" if ours > 1e6 else f"{ours:,.4g}", source)
        print(f"| {' | '.join(row)} |" if is_table else f"{row[0]:95} {row[1]:>10} {row[2]:>10}  {row[3]}")


if __name__ == "__main__":
    main()
