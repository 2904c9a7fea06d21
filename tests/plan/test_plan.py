"""The plan's model: of the catalog, a file or a trace."""

import pytest
from pydantic import ValidationError
from recordings import training, two_steps
from small_models import small_llama

from planner.errors import SpecError
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.trace.request import Input, Target, TensorInput
from planner.units import GIB
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference

IMAGES = Input(name="x", value=TensorInput(shape=(32, 3, 224, 224)))


FACTS = facts_of(
    two_steps(
        GIB, training(target=Target(kind="file", place="/home/me/nets/resnet.py", name="ResNet50"), inputs=(IMAGES,))
    )
)


PLAN = Plan(model=ModelChoice.of_trace(FACTS), gpu="rtx-4090")


def test_a_traced_module_is_named_after_its_file():
    assert (PLAN.model.id, PLAN.model.path) == ("resnet.py:ResNet50", "/home/me/nets/resnet.py")
    imported = facts_of(two_steps(GIB, training(target=Target(kind="import", place="nets.vision", name="Net"))))
    assert (ModelChoice.of_trace(imported).id, ModelChoice.of_trace(imported).path) == ("nets.vision:Net", None)


def test_a_model_cannot_have_both_an_architecture_and_a_trace():
    with pytest.raises(SpecError, match="not both"):
        ModelChoice(id="x", architecture=small_llama(), trace=FACTS)


def test_a_name_instead_of_a_model_is_told_how_to_write_one():
    with pytest.raises(SpecError, match="model: 'llama' is a name, not a model") as caught:
        Plan(model="llama")
    assert caught.value.hint == 'In Python: ModelChoice(id="llama"); in a file: {"id": "llama"}.'


def test_a_plan_is_for_one_card_unless_it_says_otherwise():
    assert Plan(model=ModelChoice(id="gpt2")).count == 1
    with pytest.raises(SpecError, match="count"):
        Plan(model=ModelChoice(id="gpt2"), count=0)


def test_the_schema_describes_the_facts_of_a_trace():
    schema = Plan.model_json_schema()
    choices = schema["$defs"]["ModelChoice"]["properties"]["trace"]["anyOf"]
    assert choices == [{"$ref": "#/$defs/TracedFacts"}, {"type": "null"}]
    assert "reserved_bytes" in schema["$defs"]["TracedFacts"]["properties"]


def test_a_mistake_in_the_facts_of_a_trace_is_named_with_its_place():
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate({"model": {"id": "net", "trace": {"torch": 2}}})
    assert ("model", "trace", "torch") in {error["loc"] for error in caught.value.errors()}


def test_a_plan_of_valid_parts_is_that_of_changed_fields():
    plan, cards = Plan(model=ModelChoice(id="a/b")), (CardCount(id="rtx-4090", count=2), CardCount(id="t4", count=1))
    on_one = {"gpu": "rtx-4090", "count": 4, "workload": Inference(batch=3)}
    of_two_kinds = {"workload": Inference(gpus=cards)}
    for parts in (on_one, of_two_kinds):
        assert plan.with_parts(**parts) == plan.evolve(**parts)
    assert plan.with_parts(**of_two_kinds).count == 3
    with pytest.raises(SpecError, match="count is 4, but"):
        plan.with_parts(**of_two_kinds, count=4)
    with pytest.raises(SpecError, match="count: must be at least 1, not 0"):
        plan.with_parts(count=0)
