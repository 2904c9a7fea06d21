import pytest

from planner.errors import SpecError
from planner.trace.notation import parse_input
from planner.trace.request import (
    AssumedValue,
    Input,
    ListInput,
    PlainInput,
    Target,
    TensorInput,
    TraceParallel,
    TraceRequest,
    has_sequence_length,
    requested_batch_size,
    requested_sequence_length,
    torch_optimizer,
    with_batch_size,
    with_sequence_length,
)


def request_of(*texts: str, kind: str = "file", **fields: object) -> TraceRequest:
    inputs = tuple(map(parse_input, texts))
    return TraceRequest(target=Target(kind=kind, place="net.py"), inputs=inputs, **fields)


def test_all_inputs_of_the_same_batch_are_resized():
    changed = with_batch_size(request_of("x=8x3x32x32", "pair=(8x4,7x4)", "n=2"), 16)
    assert requested_batch_size(changed) == 16
    assert changed.inputs[0].value.shape == (16, 3, 32, 32)
    assert [item.shape for item in changed.inputs[1].value.items] == [(16, 4), (7, 4)]
    assert changed.inputs[2].value == PlainInput(value=2)


def test_without_inputs_the_batch_field_counts():
    assert requested_batch_size(request_of()) is None
    changed = with_batch_size(request_of(), 4)
    assert (changed.batch, requested_batch_size(changed)) == (4, 4)
    assert with_batch_size(request_of("8x3"), None).inputs == request_of("8x3").inputs


def test_only_token_ids_have_a_sequence_length():
    assert not has_sequence_length(request_of("x=8x3x32x32"))
    assert not has_sequence_length(request_of("x=8x128:float32"))
    tokens = request_of("ids=4x512:int64", "mask=4x512:bool", "labels=4:int64")
    assert requested_sequence_length(tokens) == 512
    changed = with_sequence_length(tokens, 128)
    assert [given.value.shape for given in changed.inputs] == [(4, 128), (4, 128), (4,)]


def test_hugging_face_models_have_a_sequence_length():
    model = request_of(kind="config")
    assert has_sequence_length(model)
    assert requested_sequence_length(model) is None
    assert with_sequence_length(model, 256).sequence_length == 256


def test_the_first_tensor_may_be_nested():
    inner = ListInput(kind="list", items=(PlainInput(value=1), TensorInput(shape=(6, 2))))
    nested = request_of().evolve(inputs=(Input(value=PlainInput(value=True)), Input(value=inner)))
    assert requested_batch_size(nested) == 6
    assert requested_batch_size(with_batch_size(nested, 3)) == 3


def test_a_script_decides_all_but_its_steps_and_device():
    script = Target(kind="script", place="runs/train.py", command_arguments=("--lr", "0.1"))
    request = TraceRequest(target=script, task="training", steps=3, device="cpu", optimizer="AdamW")
    assert request.runs_user_code
    assert (script.title, script.short_title, script.is_script) == ("runs/train.py", "train.py", True)
    with pytest.raises(SpecError, match="a script itself decides its batch, optimizer"):
        TraceRequest(target=script, optimizer="SGD", batch=4)
    program = Target(kind="program", place="package.train")
    assert (program.short_title, program.has_file) == ("package.train", False)


@pytest.mark.parametrize("name", ["mask", "net.py:42"])
def test_a_value_is_assumed_of_a_kind_or_a_line(name):
    assert AssumedValue(name=name, value=0.5).name == name


@pytest.mark.parametrize("name", ["masks", "net.py", "net.py:x"])
def test_any_other_name_of_an_assumed_value_is_refused(name):
    with pytest.raises(SpecError, match="neither a source line"):
        AssumedValue(name=name, value=0.5)


def test_several_ranks_need_a_strategy():
    with pytest.raises(SpecError, match="several ranks need a strategy"):
        TraceParallel(ranks=2)


def test_an_optimizer_has_its_class_and_step_in_pytorch_where_it_exists_there():
    name, arguments = torch_optimizer("sgd-momentum", "loop")
    assert name == "SGD"
    assert [(argument.name, argument.value) for argument in arguments] == [("momentum", 0.9), ("foreach", False)]
    assert torch_optimizer("lion-8bit", "fused") is None


def test_a_request_has_a_limited_number_of_tokens():
    assert request_of("x=1x2", decode_tokens=100_000).decode_tokens == 100_000
    with pytest.raises(SpecError, match="decode_tokens"):
        request_of("x=1x2", decode_tokens=100_001)
