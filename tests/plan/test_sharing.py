"""Sharing that is left open: for every program, number of cards and ten models, held against explicit plans."""

from itertools import product

import pytest

from planner.errors import SpecError
from planner.memory.fit import CardFit
from planner.performance.setting import TimeSetting
from planner.plan.evaluate import (
    architecture_of,
    evaluate,
    fits_by_gpu,
    resolved_fit,
    shared_fits_among,
    with_resolved_sharing,
)
from planner.plan.plan import ModelChoice, Plan
from planner.plan.sharing import SharedFit, SharingScheme, _choose, sharing_counts, sharing_schemes, tensor_domain
from planner.plan.solve import fewest_cards, largest_that_fits
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

COUNTS = (1, 2, 4, 8)
MODELS = (
    "openai-community/gpt2",
    "google-bert/bert-base-uncased",
    "google-t5/t5-large",
    "meta-llama/Llama-3.1-8B",
    "google/gemma-2-9b",
    "Qwen/Qwen2.5-32B",
    "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen3-30B-A3B",
    "meta-llama/Llama-3.1-70B",
    "deepseek-ai/DeepSeek-V3",
)
PAIRS, NODE = "rtx-3090", "h100-sxm5-80gb"
SERVING = {"hf": Inference(profile="hf"), "vllm": Inference(profile="vllm"), "llama.cpp": Inference(weights="Q8_0")}
TRAINING = {
    name: Training(profile=name, activation_checkpointing="full")
    for name in ("hf", "liger", "unsloth", "torchtune", "deepspeed", "megatron")
}
RANKS = {"fits": 3, "tight": 2, "does-not-fit": 1, None: 0}


def usual_degrees(workload, count, gpu):
    """Return the degrees that the program's manual proposes, in its order, written down by hand."""
    if workload.task == "training":
        if workload.profile != "megatron":
            return [{"zero": 3}]
        split = {PAIRS: {2: (2, 1), 4: (2, 2), 8: (2, 4)}, NODE: {2: (2, 1), 4: (4, 1), 8: (8, 1)}}[gpu]
        groups = [split[cards] for cards in (2, 4, 8) if cards <= count]
        return [{"zero": 1}, *({"zero": 1, "tensor": t, "pipeline": p, "sequence": True} for t, p in groups)]
    if workload.profile != "vllm":
        return [{"pipeline": count}]
    split = {PAIRS: {2: (2, 1), 4: (2, 2), 8: (2, 4)}, NODE: {2: (2, 1), 4: (4, 1), 8: (8, 1)}}[gpu]
    return [{"tensor": t, "pipeline": p} for t, p in (split[cards] for cards in (2, 4, 8) if cards <= count)]


def explicit(plan, catalog, **degrees):
    """Return the evaluation of `plan` with its degrees set by hand, or None if the software does not allow them."""
    try:
        return evaluate(plan.evolve(workload=plan.workload.evolve(parallel=Parallel(**degrees))), catalog)
    except SpecError:
        return None


@pytest.mark.parametrize("gpu", [PAIRS, NODE])
@pytest.mark.parametrize(
    "workload", [*SERVING.values(), *TRAINING.values()], ids=[*SERVING, *(f"training {name}" for name in TRAINING)]
)
def test_one_card_that_is_enough_has_replicas_and_others_share_as_their_software_does(catalog, workload, gpu):
    outcomes = set()
    for model, count in product(MODELS, COUNTS):
        plan = Plan(model=ModelChoice(id=model), workload=workload, gpu=gpu, count=count)
        replicas = explicit(plan, catalog, data=count)
        if replicas is None:
            with pytest.raises(SpecError):
                evaluate(plan, catalog)
            continue
        found = evaluate(plan, catalog)
        outcomes.add("" if found.sharing is None else found.sharing.scheme)
        assert found.plan == plan
        if count == 1 or replicas.memory.verdict in ("fits", None):
            assert (found.memory, found.workload) == (replicas.memory, replicas.workload)
            assert found.sharing is None or (count > 1 and found.sharing.scheme == "")
            continue
        tried = [explicit(plan, catalog, **degrees) for degrees in usual_degrees(replicas.workload, count, gpu)]
        shared = [one for one in tried if one is not None]
        first = next((one for one in shared if one.memory.verdict == "fits"), None)
        if first is not None:
            assert found.workload.parallel.model_dump() == first.workload.parallel.model_dump()
            assert found.memory == first.memory
            assert found.memory.total_bytes < replicas.memory.total_bytes
        best = max(RANKS[one.memory.verdict] for one in [replicas, *shared])
        assert RANKS[found.memory.verdict] == best
        assert found.sharing.as_replicas.total_bytes == replicas.memory.total_bytes
        assert found.memory.total_bytes <= replicas.memory.total_bytes
    assert len(outcomes) > 1


@pytest.mark.parametrize("workload", [*SERVING.values(), TRAINING["hf"], TRAINING["megatron"]])
@pytest.mark.parametrize("count", [2, 8])
def test_every_way_to_ask_gives_the_same_answer(catalog, workload, count):
    for model in ("Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-8B"):
        plan = Plan(model=ModelChoice(id=model), workload=workload, count=count)
        fits = fits_by_gpu(plan, catalog)
        for gpu in (PAIRS, NODE, "l40s", "instinct-mi300x"):
            placed = plan.evolve(gpu=gpu)
            memory = evaluate(placed, catalog).memory
            alone = resolved_fit(placed, catalog, catalog.models.model(model)).fit
            assert (memory.verdict, memory.free_bytes) == (alone.verdict, alone.free_bytes)
            if memory.verdict == "fits":
                assert fewest_cards(placed, catalog).value <= count
            assert (fits[gpu].verdict, fits[gpu].total_bytes) == (alone.verdict, alone.total_bytes)


def test_degrees_that_are_set_win(catalog):
    for set_by_hand in ({"data": 4}, {"tensor": 2}, {"pipeline": 2, "tensor": 2}, {"sharing": "manual"}):
        plan = Plan(
            model=ModelChoice(id="Qwen/Qwen3-30B-A3B"),
            workload=Inference(profile="vllm", parallel=Parallel(**set_by_hand)),
            gpu=PAIRS,
            count=4,
        )
        found = evaluate(plan, catalog)
        assert found.sharing is None
        assert with_resolved_sharing(plan, catalog) == plan
        asked = {name: value for name, value in set_by_hand.items() if name != "sharing"}
        assert {name: getattr(found.workload.parallel, name) for name in asked} == asked


def test_groups_that_leave_cards_over_become_replicas(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=SERVING["vllm"], gpu=NODE, count=8)
    parallel = evaluate(plan, catalog).workload.parallel
    assert (parallel.tensor, parallel.pipeline, parallel.data) == (2, 1, 4)


def test_matrices_are_split_within_links_and_layers_between_them(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=SERVING["vllm"], gpu="rtx-4090", count=8)
    parallel = evaluate(plan, catalog).workload.parallel
    assert (parallel.tensor, parallel.pipeline, parallel.data) == (2, 4, 1)
    linked = evaluate(plan.evolve(timing=TimeSetting(link="nvlink")), catalog).workload.parallel
    assert (linked.tensor, linked.pipeline) == (8, 1)
    gpus = [catalog.hardware.gpu(name) for name in (NODE, "gb200-186gb", "rtx-4090")]
    assert [tensor_domain([gpu], TimeSetting()) for gpu in gpus] == [8, 72, 2]
    assert tensor_domain(gpus, TimeSetting()) == 2
    assert tensor_domain(gpus[:1], TimeSetting(cards_per_node=4)) == 4


def test_only_numbers_of_cards_that_can_share_the_network_count(catalog):
    forty_heads = catalog.models.model("Qwen/Qwen2.5-14B")
    assert list(sharing_counts(SERVING["vllm"], forty_heads)) == [2, 4, 8, 16, 32, 64]
    degrees = [sharing_schemes(SERVING["vllm"], forty_heads, count)[-1].settings for count in (8, 16)]
    assert [(one["tensor"], one["pipeline"]) for one in degrees] == [(8, 1), (8, 2)]
    fourteen_heads = catalog.models.model("Qwen/Qwen2.5-0.5B")
    degrees = sharing_schemes(SERVING["vllm"], fourteen_heads, 4)[-1].settings
    assert (degrees["tensor"], degrees["pipeline"]) == (2, 2)


def test_what_cannot_be_shared_stays_replicas(catalog):
    pipeline = Plan(model=ModelChoice(id="black-forest-labs/FLUX.1-dev"), gpu=PAIRS, count=2)
    soap = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Training(optimizer="soap"), gpu=NODE, count=8)
    for plan in (pipeline, soap):
        found = evaluate(plan, catalog)
        assert (found.memory.verdict, found.sharing.scheme) == ("does-not-fit", "")
        assert found.workload.parallel.data == plan.count


def test_cards_of_several_kinds_share_too(catalog):
    cards = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-14B"), workload=Inference(gpus=cards))
    found = evaluate(plan, catalog)
    assert (found.memory.verdict, found.sharing.scheme) == ("fits", "layer split")
    assert found.sharing.as_replicas.verdict == "does-not-fit"
    assert found.workload.parallel.pipeline == 2


def test_without_a_card_there_is_nothing_to_choose_by(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), count=4)
    found = evaluate(plan, catalog)
    assert (found.sharing, found.workload.parallel.data) == (None, 4)
    assert evaluate(plan.evolve(gpu=found.smallest_fits[0]), catalog).memory.verdict == "fits"


def test_a_search_may_share_what_the_plan_does_not_need_to_share(catalog):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-14B"), workload=SERVING["vllm"], gpu="a100-sxm4-40gb", count=4)
    assert evaluate(plan, catalog).sharing.scheme == ""
    one = largest_that_fits(plan.evolve(count=1), catalog, "context_length")
    four = largest_that_fits(plan, catalog, "context_length")
    assert (one.how, four.how) == ("", "with tensor parallelism")
    assert four.value > one.value
    assert evaluate(four.plan, catalog).memory.verdict == "fits"


def test_the_other_settings_of_time_leave_the_verdicts_as_they_are(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=TRAINING["hf"], count=2)
    compiled = plan.evolve(timing=TimeSetting(compiled=True))
    assert shared_fits_among(plan, catalog, None, 2) is shared_fits_among(compiled, catalog, None, 2)


def test_ways_without_an_estimate_are_passed_over(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=SERVING["vllm"], gpu=NODE, count=8)
    architecture = architecture_of(plan, catalog)
    replicas = resolved_fit(plan, catalog, architecture).replicas
    schemes = tuple(
        SharingScheme(name, name, "", {"tensor": cards}, "", "") for name, cards in (("a", 2), ("b", 4), ("c", 8))
    )

    def fit(parallel: Parallel) -> CardFit:
        if parallel.tensor == 2:
            raise SpecError("parallel", "cannot be estimated")
        return replicas._replace(verdict=None if parallel.tensor == 4 else "fits")

    chosen = _choose(plan.workload, SharedFit(Parallel(data=8), replicas), lambda: schemes, fit)
    assert (chosen.scheme.name, chosen.parallel.tensor, chosen.fit.verdict) == ("c", 8, "fits")


@pytest.mark.parametrize(("batch", "tensor"), [(1, 2), (50, 4), (200, 8), (2_000, 8)])
def test_as_many_cards_share_as_the_cache_of_the_batch_needs(catalog, batch, tensor):
    serving = Inference(profile="vllm", batch=batch, context_length=4096)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=serving, gpu=NODE, count=8)
    assert resolved_fit(plan, catalog, architecture_of(plan, catalog)).parallel.tensor == tensor
