import pytest
from launched import serving

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def values(plan):
    return {row.key: row.value for row in launch_settings(plan, CATALOG, "vllm").settings}


@pytest.mark.parametrize("fields", [{"batch": 4}, {"batch": 16, "context_length": 16384}, {"kv_cache": "fp8"}])
@pytest.mark.parametrize("version", ["0.33", "0.11"])
def test_the_memory_fraction_has_room_for_the_planned_context_and_hardly_more(fields, version):
    plan = serving("vllm", gpu="h100-sxm5-80gb", engine={"version": version}, **fields)
    share = values(plan)["--gpu-memory-utilization"]
    settled = launch_settings(plan, CATALOG, "vllm").plan

    def sequences(utilization):
        engine = settled.workload.engine.evolve(memory_utilization=utilization)
        again = settled.evolve(workload=settled.workload.evolve(engine=engine))
        return planner.evaluate(again, CATALOG).memory.cache_pool.sequences

    assert sequences(share) >= plan.workload.batch > sequences(round(share - 0.02, 2))


def test_a_share_that_the_plan_sets_is_kept_and_refused_if_it_is_too_small():
    assert values(serving("vllm", engine={"memory_utilization": 0.87}))["--gpu-memory-utilization"] == 0.87
    with pytest.raises(SpecError, match=r"its share is 0\.36"):
        values(serving("vllm", engine={"memory_utilization": 0.36}))


def test_what_other_programs_hold_is_not_free():
    held = serving("vllm", batch=32, context_length=4096, gpu="l40s", other_processes_bytes=16 * 2**30)
    with pytest.raises(SpecError, match=r"are free|does not fit"):
        values(held)


def test_the_version_chooses_the_image_and_the_package():
    settings = launch_settings(serving("vllm", engine={"version": "0.19"}), CATALOG, "vllm", "kubernetes")
    assert settings.version == "vllm==0.19.0"
    assert "vllm/vllm-openai:v0.19.0" in settings.files[0].text


def test_experts_are_split_across_all_gpus_or_named():
    model = planner.ModelChoice(id="Qwen/Qwen3-30B-A3B")
    plan = serving("vllm", gpu="h100-sxm5-80gb", count=4, parallel={"data": 4, "expert": 4}).evolve(model=model)
    assert values(plan)["--enable-expert-parallel"] is True
    some = plan.evolve(workload=plan.workload.evolve(parallel={"data": 4, "expert": 2}))
    settings = launch_settings(some, CATALOG, "vllm")
    assert "parallel.expert" in {row.field for row in settings.not_expressed}


def test_a_batch_that_is_not_the_number_of_sequences_is_left_to_the_clients():
    settings = launch_settings(serving("vllm", batch=2, engine={"max_num_seqs": 8}), CATALOG, "vllm")
    assert {row.field: row.value for row in settings.not_expressed if row.field == "engine.max_num_seqs"} == {}
    assert {row.key: row.value for row in settings.settings}["--max-num-seqs"] == 8


def test_an_encoder_without_a_cache_has_no_fraction_of_its_own():
    plan = serving("vllm").evolve(model=planner.ModelChoice(id="BAAI/bge-large-en-v1.5"))
    plan = plan.evolve(workload=planner.Inference(profile="vllm", context_length=512))
    assert values(plan)["--max-model-len"] == 512


def test_a_rank_is_rounded_up_to_one_that_vllm_has_and_a_higher_one_refused():
    assert values(serving("vllm", adapters={"slots": 2, "rank": 20}))["--max-lora-rank"] == 32
    with pytest.raises(SpecError, match="adapters up to rank 512"):
        values(serving("vllm", adapters={"slots": 1, "rank": 600}))


def test_a_draft_whose_heads_cannot_be_divided_is_on_each_card():
    plan = serving(
        "vllm", gpu="h100-sxm5-80gb", count=4, parallel={"tensor": 4}, speculation={"model": "Qwen/Qwen2.5-0.5B"}
    )
    plan = plan.evolve(model=planner.ModelChoice(id="Qwen/Qwen2.5-3B"))
    assert '"draft_tensor_parallel_size": 1' in values(plan)["--speculative-config"]
    head = values(serving("vllm", speculation={"method": "eagle3"}))["--speculative-config"]
    assert '"model": "./Llama-3.1-8B-eagle3"' in head


def test_a_prediction_layer_has_no_checkpoint_of_its_own():
    plan = serving("vllm", gpu="h200-sxm-141gb", count=8, parallel={"tensor": 8}, speculation={"method": "mtp"})
    plan = plan.evolve(model=planner.ModelChoice(id="deepseek-ai/DeepSeek-V3"))
    assert values(plan)["--speculative-config"] == '{"method": "mtp", "num_speculative_tokens": 1}'
