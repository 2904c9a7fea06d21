import pytest
from pydantic import ValidationError

from planner.hardware.gpu import Provenance
from planner.workload.workload import Inference, Parallel, Training

READ = Provenance(basis="published", certainty="confirmed", source="a datasheet", as_of="2026-11-21")


def test_a_spec_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Parallel().data = 2


def test_an_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="extra"):
        Parallel(tensors=2)


def test_evolving_changes_what_is_named_and_nothing_else():
    changed = Training(micro_batch=4).evolve(optimizer="sgd")
    assert (changed.micro_batch, changed.optimizer) == (4, "sgd")


def test_evolving_validates_the_whole():
    with pytest.raises(ValidationError):
        Training().evolve(micro_batch=0)
    with pytest.raises(ValidationError):
        Training().evolve(microbatch=1)
    with pytest.raises(ValidationError, match="formula"):
        READ.evolve(basis="derived")


def test_evolving_after_a_cached_property_was_read():
    workload = Training()
    hash(workload)
    assert workload.evolve(micro_batch=2).micro_batch == 2


def test_equal_specs_hash_alike_and_others_differ():
    assert hash(Inference(batch=3)) == hash(Inference(batch=3))
    assert Inference(batch=3) == Inference().evolve(batch=3)
    assert Inference(batch=3) != Inference(batch=4)
    assert hash(Inference(batch=3)) != hash(Inference(batch=4))


def test_a_spec_is_a_key_of_caches():
    assert {Inference(): "default"}[Inference()] == "default"


def test_replacing_applies_no_rule_and_forgets_what_was_cached():
    workload = Training(optimizer="soap")
    hash(workload)
    replaced = workload.replaced(compute="bf16", weights="bf16")
    assert (replaced.compute, replaced.optimizer) == ("bf16", "soap")
    assert hash(replaced) != hash(workload)
