"""Finding modules in files and packages, and making them with their arguments and inputs."""

import sys

import pytest
import torch
from watched import Heard, file_target

from planner.errors import TraceError
from planner.trace.request import Argument, Input, ListInput, PlainInput, Target, TensorInput, TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.targets import load_function, load_target

NET = """
class Net(nn.Module):
    def __init__(self, width=4, depth=(1, 2)):
        super().__init__()
        self.width, self.depth = width, depth
        self.layer = nn.Linear(width, width)

    def forward(self, x, scale=1.0):
        return self.layer(x) * scale

def module():
    return Net(8)

def pair():
    return Net(), torch.zeros(2, 4)

def several():
    return {"a": Net(), "b": Net(2)}, {"x": torch.zeros(2, 4)}, lambda modules, inputs: None

def listed():
    return [Net(), Net(2)]

def number():
    return 3

def odd():
    return 1, 2

ready = Net(16)
LIMIT = 7
"""


@pytest.fixture(autouse=True)
def as_before():
    modules, path = dict(sys.modules), list(sys.path)
    yield
    for name in sys.modules.keys() - modules.keys():
        if not name.startswith(("torch", "transformers")):
            del sys.modules[name]
    sys.path[:] = path


def made(tmp_path, name, *arguments):
    return load_target(file_target(tmp_path, NET, name, "nets_of_a_test.py"), arguments)


def test_a_class_is_called_with_the_arguments(tmp_path):
    net = made(tmp_path, "Net", Argument(name="width", value=6), Argument(name="depth", value=(3, 4))).modules
    assert (net.width, net.depth) == (6, [3, 4])


def test_a_function_may_return_a_module_with_its_inputs_and_its_step(tmp_path):
    assert made(tmp_path, "module").modules.width == 8
    pair = made(tmp_path, "pair")
    assert pair.inputs.shape == (2, 4)
    assert pair.step is None
    several = made(tmp_path, "several")
    assert list(several.modules_by_name) == ["a", "b"]
    assert several.step is not None
    assert list(made(tmp_path, "listed").modules_by_name) == ["0", "1"]


def test_an_existing_module_is_used(tmp_path):
    assert list(made(tmp_path, "ready").modules_by_name) == [""]
    with pytest.raises(TraceError, match="already a module"):
        made(tmp_path, "ready", Argument(name="width", value=1))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("number", "returned int, not a module"),
        ("odd", "returned a tuple of int, int, not a module"),
        ("LIMIT", "returned int, not a module"),
        ("Missing", "has no 'Missing'"),
        ("", "no part of .* was named"),
    ],
)
def test_a_target_that_is_not_a_module_is_an_error(tmp_path, name, reason):
    with pytest.raises(TraceError, match=reason) as error:
        made(tmp_path, name)
    if name in ("Missing", ""):
        assert "Net, module, pair, several, listed, number, odd, ready" in error.value.hint


def test_unknown_arguments_are_an_error(tmp_path):
    with pytest.raises(TraceError, match="unexpected keyword argument 'heads'") as error:
        made(tmp_path, "Net", Argument(name="heads", value=2))
    assert "width=4" in error.value.hint


def test_a_file_imports_its_neighbors_and_is_loaded_once(tmp_path):
    (tmp_path / "beside_it.py").write_text("WIDTH = 5")
    source = "import beside_it\ndef net():\n    return nn.Linear(beside_it.WIDTH, 1)\n"
    target = file_target(tmp_path, source, "net", "finds_others.py")
    assert load_target(target, ()).modules.in_features == 5
    assert load_function(f"{target.place}:net") is load_function(f"{target.place}:net")


def test_a_file_does_not_replace_a_standard_module(tmp_path):
    types = sys.modules["types"]
    assert load_target(file_target(tmp_path, NET, "module", "types.py"), ()).modules.width == 8
    assert sys.modules["types"] is types


def test_an_import_path_is_found(tmp_path, monkeypatch):
    assert isinstance(
        load_target(Target(kind="import", place="torch.nn", name="Identity"), ()).modules, torch.nn.Identity
    )
    (tmp_path / "package_of_a_test").mkdir()
    (tmp_path / "package_of_a_test" / "nets.py").write_text("from torch import nn\nclass Net(nn.Module): pass\n")
    monkeypatch.chdir(tmp_path)
    load_target(Target(kind="import", place="package_of_a_test.nets", name="Net"), ())


def test_a_missing_target_is_named_and_errors_inside_it_are_kept(tmp_path):
    with pytest.raises(TraceError, match="there is no module 'nowhere_at_all'"):
        load_target(Target(kind="import", place="nowhere_at_all.nets", name="Net"), ())
    with pytest.raises(TraceError, match="there is no file"):
        load_target(Target(kind="file", place=str(tmp_path / "none.py"), name="Net"), ())
    target = file_target(tmp_path, "import nowhere_at_all\n", "Net", "imports_nothing.py")
    with pytest.raises(ModuleNotFoundError):
        load_target(target, ())
    (tmp_path / "net.txt").write_text("")
    with pytest.raises(TraceError, match="not a Python file"):
        load_target(Target(kind="file", place=str(tmp_path / "net.txt"), name="Net"), ())


def test_a_loss_or_step_must_be_a_function(tmp_path):
    target = file_target(tmp_path, NET, "", "no_function.py")
    with pytest.raises(TraceError, match="is not a function"):
        load_function(f"{target.place}:LIMIT")


def built(tmp_path, name, **changes):
    return build_run(
        TraceRequest(target=file_target(tmp_path, NET, name, "built_nets.py"), device="cpu", **changes), Heard()
    )


def test_inputs_are_made_from_shapes_by_place_and_by_name(tmp_path):
    tensor = Input(value=TensorInput(shape=(3, 4)))
    scale = Input(name="scale", value=PlainInput(value=2))
    call = built(tmp_path, "Net", inputs=(tensor, scale)).forward_call
    assert [one.shape for one in call.args] == [(3, 4)]
    assert call.kwargs == {"scale": 2}
    nested = ListInput(kind="tuple", items=(TensorInput(shape=(2,)), ListInput(kind="list", items=(PlainInput(),))))
    assert built(tmp_path, "Net", inputs=(Input(value=nested),)).forward_call.args[0][1] == [None]


@pytest.mark.parametrize(
    ("dtype", "high", "largest"),
    [("int64", None, 1), ("int64", 50, 49), ("uint8", 100, 99), ("bool", None, 1), ("int8", None, 1)],
)
def test_integers_are_random_within_their_bound_and_always_the_same(tmp_path, dtype, high, largest):
    given = (Input(value=TensorInput(shape=(4_000,), dtype=dtype, high=high)),)
    first, again = (built(tmp_path, "Net", inputs=given).forward_call.args[0] for _ in range(2))
    assert first.dtype is getattr(torch, dtype)
    assert int(first.max()) == largest
    assert torch.equal(first, again)


def test_integers_stay_below_the_size_of_the_first_embedding():
    request = TraceRequest(
        target=Target(kind="import", place="torch.nn", name="Embedding"),
        arguments=(Argument(name="num_embeddings", value=300), Argument(name="embedding_dim", value=2)),
        inputs=(Input(value=TensorInput(shape=(9_000,), dtype="int64")),),
        device="cpu",
    )
    assert int(build_run(request, Heard()).forward_call.args[0].max()) == 299


def test_the_targets_own_inputs_are_resized_to_another_batch(tmp_path):
    assert built(tmp_path, "pair", batch=7, sequence_length=9).forward_call.args[0].shape == (7, 9)
    assert built(tmp_path, "pair", batch=1).forward_call.args[0].shape == (1, 4)


def test_a_dtype_applies_to_parameters_and_inputs(tmp_path):
    net = built(tmp_path, "pair", dtype="bf16")
    assert net.module.layer.weight.dtype is torch.bfloat16
    assert net.forward_call.args[0].dtype is torch.bfloat16


def test_unknown_inputs_are_an_error(tmp_path):
    with pytest.raises(TraceError, match="the module's inputs are not known"):
        built(tmp_path, "module")


def test_parameters_are_frozen_by_pattern_or_module(tmp_path):
    for pattern in ("*weight", "layer.weight"):
        net = built(tmp_path, "pair", freeze=(pattern,)).module
        assert [p.requires_grad for p in net.parameters()] == [False, True]
    frozen = built(tmp_path, "pair", freeze=("layer",)).modules.values()
    assert not any(p.requires_grad for module in frozen for p in module.parameters())
    with pytest.MonkeyPatch.context() as patch:  # as networks of transformers name the prefix of their body
        patch.setattr(torch.nn.Module, "base_model_prefix", "layer", raising=False)
        assert [p.requires_grad for p in built(tmp_path, "pair", freeze=("weight",)).module.parameters()] == [
            False,
            True,
        ]
    with pytest.raises(TraceError, match="no parameter matches 'decoder'") as error:
        built(tmp_path, "pair", freeze=("decoder",))
    assert "layer.weight" in error.value.hint


def test_built_modules_and_inputs_are_reported(tmp_path):
    heard = Heard()
    build_run(TraceRequest(target=file_target(tmp_path, NET, "pair", "told_nets.py"), device="cpu"), heard)
    assert heard.phases == [("load", 0)]
    assert heard.bytes == {"parameters": 80, "buffers": 0, "inputs": 32}
    assert list(heard.named) == [""]
    assert heard.notes == ["Inputs: 2×4 float32."]
