"""Changes of a plan that cost nothing but speed, from the mildest to the strongest."""

from planner.plan.advice.training_changes import TRAINING_CHANGES
from planner.plan.evaluate import architecture_of
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.changes import AdaptedPlan, _changed, speed_only_changes
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


def changed(catalog, workload, *, quantize: bool = False) -> tuple[AdaptedPlan, ...]:
    plan = Plan(model=LLAMA, workload=workload)
    return speed_only_changes(plan, architecture_of(plan, catalog), quantize=quantize)


def test_a_training_is_checkpointed_and_its_optimizer_kept_in_eight_bits(catalog):
    names = [one.names for one in changed(catalog, Training(micro_batch=1))]
    assert names == [
        ("8-bit AdamW",),
        ("selective checkpointing",),
        ("8-bit AdamW", "selective checkpointing"),
        ("full checkpointing",),
        ("8-bit AdamW", "full checkpointing"),
    ]


def test_smaller_micro_batches_keep_the_batch_of_a_step(catalog):
    for one in changed(catalog, Training(micro_batch=4, gradient_accumulation=2)):
        workload = one.plan.workload
        assert workload.micro_batch * workload.gradient_accumulation == 8
        assert (workload.method, workload.sequence_length) == ("full", None)


def test_what_the_plan_does_already_is_not_tried(catalog):
    done = Training(micro_batch=1, optimizer="adamw-8bit", activation_checkpointing="full")
    assert changed(catalog, done) == ()


def test_weights_keep_their_bits_unless_fewer_are_allowed(catalog):
    assert changed(catalog, Inference()) == ()
    fewer = changed(catalog, Inference(), quantize=True)
    assert [one.plan.workload.weights for one in fewer] == ["int8", "nf4", "Q4_K_M", "awq4-128"]
    assert {one.plan.workload.profile for one in fewer if one.names == ("Q4_K_M in llama.cpp",)} == {"llama.cpp"}


def test_quantized_adapters_come_after_all_that_keeps_the_bits(catalog):
    tried = changed(catalog, Training(method="lora"), quantize=True)
    quantized = ["QLoRA instead of LoRA" in one.names for one in tried]
    assert any(quantized)
    assert quantized == sorted(quantized)


def test_full_training_never_becomes_another_method(catalog):
    methods = {one.plan.workload.method for one in changed(catalog, Training(micro_batch=2), quantize=True)}
    assert methods == {"full"}


def test_a_change_that_the_workload_refuses_gives_no_plan(catalog):
    plan = Plan(model=LLAMA, workload=Training(micro_batch=4))
    (change,) = [known for known in TRAINING_CHANGES if known.name == "full checkpointing"]
    assert _changed(plan, [change]).plan.workload.activation_checkpointing == "full"
    assert _changed(plan, [change._replace(settings={"micro_batch": 0})]) is None
