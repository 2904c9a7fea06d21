"""Optimizer steps as a usual script does them: phases, gradients, states, losses, adapters and checkpointing."""

import pytest
import torch
from torch import nn
from watched import Heard, file_target, heard_run

from planner.errors import TraceError
from planner.trace.request import Argument, TraceLora, TraceRequest
from planner.trace.worker.build import LoraLinear, build_run, repeating_blocks
from planner.trace.worker.optimizers import make_optimizer
from planner.trace.worker.running import LossFunction

SOURCE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        return torch.relu(self.inner(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

class Offers(Net):
    on = False
    def gradient_checkpointing_enable(self):
        self.on = True

def net():
    return Net(), torch.ones(2, 4)

def offers():
    return Offers(), torch.ones(2, 4)

def plain():
    return nn.Linear(4, 3), torch.ones(2, 4)

SEEN = []

def seeing():
    module = nn.Linear(4, 3, bias=False)
    def see(*_):
        SEEN.append(module.weight.grad if module.weight.grad is None else float(module.weight.grad.abs().sum()))
    module.register_forward_pre_hook(see)
    return module, torch.ones(2, 4)

def own_loss(output, inputs):
    return (output - inputs.sum()).pow(2).sum()

def wrong_loss(output, inputs):
    return output

def gan():
    modules = {"generator": nn.Linear(2, 4), "critic": nn.Linear(4, 1), "judge": nn.Linear(4, 1).requires_grad_(False)}
    return modules, torch.ones(3, 2), gan_step

def gan_step(modules, inputs, optimizers):
    assert optimizers["judge"] is None
    fake = modules["generator"](inputs)
    modules["critic"](fake.detach()).mean().backward()
    optimizers["critic"].step()
    optimizers["critic"].zero_grad()
    modules["critic"](fake).mean().backward()
    optimizers["generator"].step()
    optimizers["generator"].zero_grad()

def sampling(module, inputs):
    for _ in range(3):
        inputs = module(inputs)[:, :1].expand(2, 4)

def casting(module, inputs, optimizers):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = module(inputs).sum()
    torch.autocast_increment_nesting()
    assert torch.autocast_decrement_nesting() == 0, "autocast is still on"
    loss.backward()

def odd_step(modules):
    pass
"""


def request(tmp_path, name, **changes):
    target = file_target(tmp_path, SOURCE, name, f"steps_{tmp_path.name}.py")
    return TraceRequest(target=target, **{"task": "training", "device": "cpu"} | changes)


def function(tmp_path, name):
    return f"{tmp_path / f'steps_{tmp_path.name}.py'}:{name}"


def test_a_training_step_reports_phases_and_categories(tmp_path):
    heard = heard_run(request(tmp_path, "plain", steps=2))
    step = ["forward", "loss", "backward", "step"]
    assert heard.phases == [("load", 0), *((name, 0) for name in step), *((name, 1) for name in step)]
    parameters = (4 * 3 + 3) * 4
    assert heard.bytes["parameters"] == parameters
    assert heard.bytes["gradients"] >= 2 * parameters
    # Two moments for each parameter, and a count of steps for each tensor, told after each step.
    assert heard.bytes["optimizer_states"] == 2 * (2 * parameters + 2 * 4)
    assert heard.bytes["inputs"] == 2 * 4 * 4 + 2 * 8
    assert any("cross_entropy" in note for note in heard.notes)


def test_accumulation_runs_several_passes_for_a_step(tmp_path):
    heard = heard_run(request(tmp_path, "plain", steps=1, gradient_accumulation=3))
    assert [name for name, _ in heard.phases] == ["load", *["forward", "loss", "backward"] * 3, "step"]


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        ("after-step", [None, "some", None, "some"]),
        ("before-backward", [None, "some", "some", "some"]),
        ("zeros", [None, "some", 0.0, "some"]),
    ],
)
def test_gradients_are_freed_as_the_policy_requires(tmp_path, policy, seen):
    from planner.trace.worker.targets import load_function as load

    asked = request(tmp_path, "seeing", zero_grad=policy, gradient_accumulation=2, optimizer="SGD")
    heard_run(asked)
    found = load(f"{asked.target.place}:seeing").__globals__["SEEN"]
    assert ["some" if grad else grad for grad in found] == seen


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("adamw", {}, torch.optim.AdamW),
        ("SGD", {"momentum": 0.5, "lr": 1}, torch.optim.SGD),
        ("sgd-momentum", {}, torch.optim.SGD),
        ("Adafactor", {}, torch.optim.Adafactor),
        ("RMSprop", {"foreach": False}, torch.optim.RMSprop),
        ("adam", {"fused": True}, torch.optim.Adam),
    ],
)
def test_optimizers_are_found_by_name(name, arguments, kind):
    given = [Argument(name=name, value=value) for name, value in arguments.items()]
    made = {device: make_optimizer(name, given, nn.Linear(2, 2).parameters(), device) for device in ("cpu", "cuda")}
    assert type(made["cpu"]) is kind
    chooses = not arguments.keys() & {"foreach", "fused"} and kind is not torch.optim.Adafactor
    assert made["cuda"].defaults["foreach"] == (True if chooses else arguments.get("foreach"))
    assert made["cpu"].defaults["foreach"] == arguments.get("foreach")


@pytest.mark.parametrize(
    ("name", "argument", "reason"),
    [
        ("adamw-8bit", None, "PyTorch has no optimizer 'adamw-8bit'"),
        ("AdamW", "beta", "AdamW has no argument 'beta'"),
        ("SGD", "lr", "SGD: Invalid learning rate"),
    ],
)
def test_invalid_optimizers_have_a_reason(name, argument, reason):
    given = () if argument is None else (Argument(name=argument, value=-1),)
    with pytest.raises(TraceError, match=reason):
        make_optimizer(name, given, nn.Linear(2, 2).parameters(), "cpu")


@pytest.mark.parametrize(("fused", "counters"), [(False, 4), (True, 0)])
def test_step_counts_are_on_the_host_unless_the_optimizer_is_fused(tmp_path, fused, counters):
    arguments = (Argument(name="fused", value=fused),)
    assert len(heard_run(request(tmp_path, "plain", optimizer_arguments=arguments)).host) == counters


def test_the_step_counts_of_asgd_are_on_the_card(tmp_path):
    assert heard_run(request(tmp_path, "plain", optimizer="ASGD")).host == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"optimizer": "LBFGS"}, "LBFGS recomputes the loss"),
        ({"freeze": ("*",)}, "no parameter is trainable"),
        ({"decode_tokens": 1, "task": "inference"}, "only causal networks"),
    ],
)
def test_runs_that_are_impossible_have_a_reason(tmp_path, changes, reason):
    with pytest.raises(TraceError, match=reason):
        heard_run(request(tmp_path, "plain", **changes))


def test_inference_is_one_forward_pass(tmp_path):
    heard = heard_run(request(tmp_path, "net", task="inference"))
    assert heard.phases == [("load", 0), ("forward", 0)]
    assert not heard.named[""].training


def test_losses_may_be_functions_or_names(tmp_path):
    heard_run(request(tmp_path, "plain", loss="mse_loss"))
    with pytest.raises(TraceError, match="no loss 'focal'"):
        heard_run(request(tmp_path, "plain", loss="focal"))
    asked = request(tmp_path, "net")
    heard_run(asked.evolve(loss=function(tmp_path, "wrong_loss").replace("wrong", "own")))
    with pytest.raises(TraceError, match="did not return a scalar"):
        heard_run(asked.evolve(loss=function(tmp_path, "wrong_loss")))


@pytest.mark.parametrize(
    ("shape", "inputs", "chosen"),
    [
        ((5, 3), torch.zeros(5, 4), "cross_entropy"),
        ((5, 4), torch.zeros(5, 4), "mse_loss"),
        ((5, 7, 3), torch.zeros(5, 7, dtype=torch.int64), "cross_entropy"),
        ((2, 3, 4, 4), torch.zeros(2, 8), "mse_loss"),
        ((5, 7, 3), torch.zeros(5, 9), "mean"),
        ((5, 1), torch.zeros(5, 9), "mean"),
    ],
)
def test_the_loss_is_inferred_from_the_output(shape, inputs, chosen):
    heard = Heard()
    loss = LossFunction(None, inputs, heard)
    output = torch.zeros(shape, requires_grad=True)
    for _ in range(2):
        loss(output).backward()
    (note,) = heard.notes
    assert note.startswith(f"Loss: {chosen},")


def test_the_networks_own_loss_is_used():
    number = torch.ones((), requires_grad=True)
    loss = LossFunction(None, (), Heard())
    for output in (number, {"loss": number}, (torch.ones(3, 2), number), {"logits": torch.ones(2, 2), "loss": number}):
        assert loss(output) is number
    with pytest.raises(TraceError, match="nothing in the output depends"):
        loss((torch.ones(3), {"x": 1}))


def test_only_adapters_are_trained(tmp_path):
    heard = heard_run(request(tmp_path, "net", lora=TraceLora(rank=2, dropout=0.1, targets=("inner",))))
    trained = [name for name, value in heard.named[""].named_parameters() if value.requires_grad]
    assert trained == [f"blocks.{n}.inner.lora_{side}.weight" for n in (0, 1) for side in "AB"]
    assert heard.bytes["adapters"] == 2 * (4 * 2 + 2 * 4) * 4
    with pytest.raises(TraceError, match="no linear layer matches q_proj") as error:
        heard_run(request(tmp_path, "net", lora=TraceLora(targets=("q_proj",))))
    assert "head, inner" in error.value.hint


def test_a_new_adapter_has_no_effect_and_keeps_the_base_format():
    base = nn.Linear(4, 3, dtype=torch.bfloat16)
    x = torch.randn(2, 4, dtype=torch.bfloat16)
    result = LoraLinear(base, 2, torch.float32, 0.0)(x)
    assert result.dtype is torch.bfloat16
    assert torch.equal(result, base(x))


def test_attention_of_pytorch_reads_the_matrix_and_bias_below_an_adapter():
    attention = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 1, 4)
    plain = attention(x, x, x)[0]
    attention.out_proj = LoraLinear(attention.out_proj, 2, torch.float32, 0.0)
    assert torch.equal(attention(x, x, x)[0], plain)


def test_every_linear_layer_has_an_adapter_by_default(tmp_path):
    net = build_run(request(tmp_path, "net", lora=TraceLora()), Heard()).module
    assert sum(isinstance(module, LoraLinear) for module in net.modules()) == 3


def test_checkpointed_blocks_have_the_same_gradients(tmp_path):
    gradients = []
    for checkpointing in ("none", "full"):
        torch.manual_seed(0)
        asked = request(tmp_path, "net", checkpointing=checkpointing)
        built = build_run(asked, heard := Heard())
        built.module(*built.forward_call.args).sum().backward()
        gradients.append([p.grad for p in built.module.parameters()])
    assert "on 2 repeating modules" in " ".join(heard.notes)
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_a_modules_own_checkpointing_is_preferred(tmp_path):
    assert build_run(request(tmp_path, "offers", checkpointing="full"), Heard()).module.on
    with pytest.raises(TraceError, match="Linear supports no activation checkpointing"):
        build_run(request(tmp_path, "plain", checkpointing="full"), Heard())


def test_repeating_blocks_are_found_at_any_depth():
    def block():
        return nn.Sequential(nn.Linear(1, 1), nn.ReLU())

    assert len(repeating_blocks(nn.Sequential(block(), block()))) == 2
    inner = nn.ModuleList([block(), block(), nn.Linear(1, 1)])
    assert len(repeating_blocks(nn.Sequential(nn.Linear(1, 1), inner))) == 2
    assert repeating_blocks(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))) == []


def test_several_modules_are_trained_by_the_users_step(tmp_path):
    heard = heard_run(request(tmp_path, "gan", steps=1))
    assert [name for name, _ in heard.phases] == [
        *("load", "forward", "forward", "loss", "forward", "loss", "backward", "step"),
        *("forward", "loss", "backward", "step"),
    ]
    assert heard.bytes["optimizer_states"] > 0
    with pytest.raises(TraceError, match="returns 3 modules"):
        heard_run(request(tmp_path, "gan", task="inference"))


def test_autocast_in_the_users_step_is_the_outermost_and_frees_its_copies_of_weights(tmp_path):
    asked = request(tmp_path, "plain", steps=1)
    heard_run(asked.evolve(step=function(tmp_path, "casting")))
    with pytest.raises(AssertionError, match="autocast is still on"):
        heard_run(asked.evolve(step=function(tmp_path, "casting"), autocast="bf16"))


def test_the_users_step_may_run_inference(tmp_path):
    asked = request(tmp_path, "plain", task="inference")
    heard = heard_run(asked.evolve(step=function(tmp_path, "sampling"), steps=1))
    assert [name for name, _ in heard.phases] == ["load", "forward", *["forward", "loss"] * 3]
    with pytest.raises(TraceError, match=r"must take|the step function takes \(modules\)"):
        heard_run(asked.evolve(step=function(tmp_path, "odd_step")))
