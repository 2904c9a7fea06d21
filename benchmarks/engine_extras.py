"""Published figures of drafts, adapters and caches in RAM, beside what is estimated: `engine_extras.py [--table]`.

Each source names its figure; none of them is used for a constant. With `--table` rows are Markdown, as in the manual.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from planner.memory.inference.adapters import served_adapters_term
from planner.models.drafts import with_draft
from planner.performance.inference.request import prompt_time
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.service_simulation import deploy_evaluated
from planner.serving.deployment import ServingSetup
from planner.workload.workload import Inference

EAGLE = "SafeAILab/EAGLE README.md"
HEADS = (
    ("meta-llama/Llama-2-7b-hf", 0.24), ("meta-llama/Llama-2-13b-hf", 0.37), ("meta-llama/Llama-2-70b-hf", 0.99),
    ("meta-llama/Meta-Llama-3-8B", 0.25), ("Qwen/Qwen2-7B", 0.26), ("Qwen/Qwen2-72B", 1.05),
)  # fmt: skip
PAPER = "EAGLE-3, arXiv 2503.01840, SGLang on H100, MT-Bench, trees of drafts"
QWEN = "Tengyunw/qwen3_8b_eagle3, SGLang on H200, trees of drafts"


class Figure(NamedTuple):
    """A published figure, what is estimated for it, and the source."""

    what: str
    published: float
    ours: float
    source: str


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
        times = prompt_time(found.run, 1, tokens).seconds / (tokens * found.ram_token_seconds)
        yield Figure(f"cache of {tokens:,} tokens from RAM, times as fast as a prompt", published, times, blog)


def speed(catalog: Catalog, model: str, gpu: str, count: int = 1, **fields: object) -> float:
    """Return the tokens a second of requests in SGLang."""
    fields = {"prompt_length": 128, "context_length": 640, "weights": None} | fields
    workload = Inference(profile="sglang", **fields)
    time = evaluate(Plan(model=ModelChoice(id=model), gpu=gpu, count=count, workload=workload), catalog).time
    assert time is not None
    assert time.tokens_per_second is not None
    return time.tokens_per_second


def main() -> None:
    """Print the figures as text or as a table of the manual."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    is_table = parser.parse_args().table
    if is_table:
        print("| figure | published | estimated | source |\n|---|---|---|---|")
    for what, published, ours, source in figures(load_catalog()):
        row = (what, f"{published:,.7g}", f"{ours:,.7g}" if ours > 1e6 else f"{ours:,.4g}", source)
        print(f"| {' | '.join(row)} |" if is_table else f"{row[0]:70} {row[1]:>10} {row[2]:>10}  {row[3]}")


if __name__ == "__main__":
    main()
