"""What cards hold that share a network: their buffers, their place, and which of them is fullest."""

import pytest
from small_models import MIXTRAL, bundled, llama, other, small_llama

from planner.memory.estimate import estimate_memory, estimate_on
from planner.memory.parallel.placing import CardGroup, least_shards
from planner.memory.parallel.shares import PersistentBuffers, communication_term, sharded_term, with_more_bytes
from planner.memory.phases import DeferredTerm
from planner.memory.result import TermPart
from planner.memory.software import memory_of
from planner.memory.terms import term
from planner.units import GIB
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

DEEP = small_llama(num_hidden_layers=8)


def training(**parallel):
    return Training(sequence_length=256, parallel=Parallel(**parallel))


def held(result, phase) -> dict[str, int]:
    found = next(one for one in result.phases if one.name == phase)
    return {share.name: share.bytes for share in found.shares}


def exchanged(result) -> dict[str, int]:
    return {part.name: part.bytes for part in result.term("communication").parts}


def cards(*named: tuple[str, int]) -> tuple[CardGroup, ...]:
    hardware = bundled().hardware
    found = []
    for name, number in named:
        gpu = hardware.gpu(name)
        found.append(CardGroup(gpu, hardware.usable_memory(gpu), number))
    return tuple(found)


def test_replicas_hold_their_gradients_twice_or_in_the_buckets():
    beside, within = (
        estimate_memory(llama(), training(gradient_as_bucket_view=view), count=8) for view in (False, True)
    )
    gradients = 4 * llama().parameters
    assert held(beside, "step")["communication"] - held(within, "step")["communication"] == gradients
    assert held(within, "forward")["gradients"] == gradients
    assert "gradients" not in held(beside, "forward") or held(beside, "forward")["gradients"] < gradients


def test_one_card_sends_nothing():
    assert estimate_memory(DEEP, training()).term("communication") is None
    assert estimate_memory(DEEP, Inference(), count=4).term("communication") is None


def communicators(workload):
    return memory_of(DEEP, workload).communicators(workload)


@pytest.mark.parametrize(("cards_", "size"), [(2, 544 * 10**6), (4, 688 * 10**6)])
def test_a_communicator_takes_what_was_measured(cards_, size):
    own = communicators(training(data=cards_))
    assert [part.bytes for part in own] == [size]
    assert memory_of(DEEP, training()).most_communicator_bytes(own) == size + 512 * 2**20


def test_each_group_has_a_communicator():
    workload = training(data=2, tensor=4, pipeline=2, context=2, expert=2)
    names = [part.name for part in communicators(workload)]
    assert names == [
        "NCCL communicator, 4 cards (data)",
        "NCCL communicator, 4 cards (tensor)",
        "NCCL communicator, 2 cards (pipeline)",
        "NCCL communicator, 2 cards (context)",
        "NCCL communicator, 2 cards (expert)",
    ]


def test_engines_have_communicators_of_their_own():
    vllm = communicators(Inference(profile="vllm", parallel=Parallel(tensor=2)))
    assert vllm[0].bytes == pytest.approx(1.82 * GIB, rel=1e-3)
    assert communicators(Inference(profile="llama.cpp", parallel=Parallel(tensor=2))) == ()
    assert communicators(Inference(profile="hf", parallel=Parallel(pipeline=4))) == ()


def test_tokens_are_gathered_and_handed_on():
    alone = exchanged(estimate_memory(DEEP, training(tensor=2, pipeline=2), count=4))
    sharded = exchanged(estimate_memory(DEEP, training(tensor=2, pipeline=2, sequence=True), count=4))
    stream = 256 * 64 * 2
    assert alone["input of a stage and its gradient"] == 2 * stream
    assert sharded["input of a stage and its gradient"] == stream
    assert sharded["tokens gathered for a block"] == stream
    assert "tokens gathered for a block" not in alone


def test_keys_and_values_go_round():
    found = exchanged(estimate_memory(DEEP, training(context=2), count=2))
    width = DEEP.main.groups[0].layer.mixer.kv_dim
    assert found["keys and values in transfer"] == 4 * 128 * width * 2


def test_latents_have_no_ring_of_heads():
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    found = estimate_memory(deepseek, Training(sequence_length=64, parallel=Parallel(context=2, zero=3)), count=2)
    assert exchanged(found).get("keys and values in transfer", 0) == 0


def test_the_fullest_stage_counts():
    # Layers of [1, 2, 2, 3]: tools that take them as even are a third too low.
    even, uneven = (
        estimate_memory(llama(num_hidden_layers=8), training(pipeline=4, pipeline_layers=layers), count=4)
        for layers in ((), (1, 2, 2, 3))
    )
    assert [row.layers for row in uneven.per_gpu] == [1, 2, 2, 3]
    assert uneven.fullest == 3
    assert uneven.total_bytes == uneven.per_gpu[3].total_bytes == max(row.total_bytes for row in uneven.per_gpu)
    # The head makes the last stage the fullest of even ones, too.
    assert uneven.total_bytes > even.total_bytes + 16 * llama().main.groups[0].layer.parameters


def test_the_first_stage_holds_the_most_micro_batches():
    often = Training(sequence_length=2048, gradient_accumulation=8, parallel=Parallel(pipeline=4))
    result = estimate_memory(llama(), often, count=4)
    kept = [row.total_bytes for row in result.per_gpu]
    assert kept[0] > kept[1] > kept[2]
    once = estimate_memory(llama(), often.evolve(gradient_accumulation=1), count=4)
    assert once.per_gpu[0].total_bytes < kept[0]


def test_interleaved_stages_hold_more_activations():
    plain, turns = (
        estimate_memory(
            llama(),
            Training(
                sequence_length=2048, gradient_accumulation=8, parallel=Parallel(pipeline=4, interleave=interleave)
            ),
            count=4,
        )
        for interleave in (1, 4)
    )
    assert turns.per_gpu[0].total_bytes > plain.per_gpu[0].total_bytes


def test_only_the_last_stage_computes_the_loss():
    result = estimate_memory(llama(), training(pipeline=2), count=2)
    assert result.per_gpu[0].stage == 0
    assert "loss" in {phase.name for phase in result.phases} or result.fullest == 0


def test_equal_cards_are_one_row():
    (row,) = estimate_on(DEEP, training(zero=3), cards(("h100-sxm5-80gb", 8))).per_gpu
    assert (row.count, row.stage, row.layers) == (8, None, None)


def test_layers_follow_the_free_memory_of_unequal_cards():
    workload = Inference(weights="F16", parallel=Parallel(pipeline=3))
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 2)))
    assert [row.gpu for row in result.per_gpu] == ["rtx-4090", "rtx-3060-12-gb", "rtx-3060-12-gb"]
    first, *others = [row.layers for row in result.per_gpu]
    assert first > max(others)
    assert first + sum(others) == 32


def test_named_layers_are_not_split_by_memory():
    workload = Inference(parallel=Parallel(pipeline=2, pipeline_layers=(4, 28)))
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1)))
    assert [row.layers for row in result.per_gpu] == [4, 28]
    assert result.fullest == 1


def test_cards_of_unknown_memory_share_evenly():
    named = cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1))
    unknown = tuple(one._replace(usable=None) for one in named)
    result = estimate_on(llama(), Inference(parallel=Parallel(pipeline=2)), unknown)
    assert [row.layers for row in result.per_gpu] == [16, 16]


def test_a_stage_of_several_unequal_cards_is_a_row_each():
    named = cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1), ("rtx-4090", 2))
    result = estimate_on(llama(), Inference(profile="vllm", parallel=Parallel(pipeline=2, tensor=2)), named)
    rows = [(row.gpu, row.count, row.stage) for row in result.per_gpu]
    assert rows == [("rtx-4090", 1, 0), ("rtx-3060-12-gb", 1, 0), ("rtx-4090", 2, 1)]
    assert result.fullest == 1


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Inference(weights="F16", parallel=Parallel(pipeline=2)), "llama.cpp splits the layers in proportion"),
        (Inference(parallel=Parallel(pipeline=2)), "device_map auto"),
        (Inference(profile="vllm", parallel=Parallel(pipeline=2)), "vLLM splits the layers evenly"),
        (Training(parallel=Parallel(pipeline=2)), "Pipeline stages get equally many layers"),
    ],
)
def test_the_note_names_what_splits(workload, said):
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1)))
    assert any(said in note for note in result.notes)


def test_unequal_cards_that_hold_the_same_are_decided_by_the_smallest():
    result = estimate_on(llama(), training(zero=3), cards(("h100-sxm5-80gb", 4), ("rtx-3060-12-gb", 4)))
    assert result.fullest == 1
    assert any("the card with the least memory decides" in note for note in result.notes)


def test_replicas_that_answer_know_nothing_of_each_other():
    result = estimate_on(llama(), Inference(), cards(("h100-sxm5-80gb", 1), ("rtx-4090", 1)))
    assert result.per_gpu[0].total_bytes == pytest.approx(result.per_gpu[1].total_bytes, rel=0.1)


@pytest.mark.parametrize(
    ("workload", "shards"),
    [(training(zero=3, data=8), 8), (training(zero=2, data=8, tensor=2), 2), (training(pipeline=4), 4)],
)
def test_what_is_divided_at_least(workload, shards):
    assert least_shards(workload) == shards


def test_other_processes_take_layers_away():
    hardware = bundled().hardware
    gpu = hardware.gpu("rtx-4090")
    full, small = (
        CardGroup(hardware.gpu(name), hardware.usable_memory(gpu).evolve(bytes=size * GIB))
        for name, size in (("rtx-4090", 24), ("rtx-3090", 12))
    )
    splits = [
        [
            row.layers
            for row in estimate_on(
                llama(),
                Inference(weights="F16", parallel=Parallel(pipeline=2), other_processes_bytes=taken),
                (full, small),
            ).per_gpu
        ]
        for taken in (0, 8 * GIB)
    ]
    assert splits[1][1] < splits[0][1]


def test_autocast_of_shared_parameters_is_left_to_what_shares_them():
    plain = estimate_memory(llama(), training(zero=3), count=8)
    other_format = estimate_memory(llama(), Training(sequence_length=256, compute="bf16", parallel=Parallel(zero=3)))
    assert not any(term.name == "temporaries" for term in plain.terms)
    assert other_format.total_bytes > 0


def test_megatron_has_an_engine_beside_pytorch():
    found = estimate_memory(llama(), training().evolve(profile="megatron", compute="bf16"))
    assert exchanged(found) == {"workspace of Transformer Engine": 32 * 2**20}


def test_experts_of_a_group_are_a_share():
    mixtral = other("mixtral", MIXTRAL, num_hidden_layers=2)
    whole, sharded = (
        estimate_memory(mixtral, Training(sequence_length=64, parallel=Parallel(expert=e)), count=8) for e in (1, 8)
    )
    assert held(sharded, "step")["weights"] < held(whole, "step")["weights"] / 3


def test_buffers_of_libraries_are_assumed_and_those_of_cards_are_not():
    own = term("communication", 5, "5", (), "s")
    assert communication_term((("a", 5), ("none", 0)), "s", PersistentBuffers()).write().certainty == "measured"
    assert communication_term((("a", 5),), "s", PersistentBuffers(), assumed=True).write().certainty == "assumed"
    written = communication_term((), "s", PersistentBuffers()).write()
    assert (written.bytes, written.formula) == (0, "0")
    assert own.bytes == 5


@pytest.mark.parametrize(("more", "size", "sign"), [(3, 13, "+"), (-4, 6, "−"), (-40, 0, "−")])
def test_a_term_grows_or_shrinks_to_nothing_at_least(more, size, sign):
    grown = with_more_bytes(term("activations", 10, "T", (), "s"), more, "freed by then")
    assert isinstance(grown, DeferredTerm)
    written = grown.write()
    assert (grown.bytes, written.bytes) == (size, size)
    assert written.formula == f"T {sign} M"
    assert not written.parts, "what is added would be a part, and the rest none"
    parts = (TermPart(name="all of it", bytes=10, formula="T", source="s"),)
    parted = with_more_bytes(term("activations", 10, "T", (), "s", parts=parts), more, "freed by then").write()
    assert sum(part.bytes for part in parted.parts) == (size if more > 0 else 0)


def test_parts_of_a_term_are_shared_to_the_byte():
    whole = term(
        "optimizer_states",
        100,
        "P",
        (),
        "s",
        parts=tuple(TermPart(name=str(size), bytes=size, formula=f"{size}", source="s") for size in (33, 67)),
    )
    written = sharded_term(whole, 1, 3, 3, "of three").write()
    assert written.bytes == 34
    assert sum(part.bytes for part in written.parts) == 34
    more = with_more_bytes(whole.evolve(parts=()), 5, "more").write()
    assert (more.bytes, more.parts) == (whole.bytes + 5, ())
    empty = whole.evolve(bytes=0, low_bytes=0, high_bytes=0, parts=(whole.parts[0],))
    assert sharded_term(empty, 1, 3, 3, "of three").write().bytes == 0


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (
            training(),
            "Replicas as implemented by DistributedDataParallel of PyTorch 2.13, over 4 cards: gradients twice",
        ),
        (training(gradient_as_bucket_view=True), "over 4 cards: gradients once, in buckets."),
        (training(zero=3), "ZeRO-3 as implemented by FSDP2 of PyTorch 2.13, over 4 cards: shares of parameters"),
        (training(zero=1, tensor=2), "ZeRO-1 as implemented by DeepSpeed 0.19, over 2 cards: 16-bit parameters"),
        (
            training(tensor=4).evolve(profile="megatron"),
            "Replicas as implemented by Megatron-LM 0.20, over 1 card: 16-bit",
        ),
        (training().evolve(profile="megatron"), "Replicas as implemented by Megatron-LM 0.20, over 4 cards: 16-bit"),
    ],
)
def test_the_note_names_what_shares_and_what_it_keeps(workload, said):
    assert any(said in note for note in estimate_memory(DEEP, workload, count=4).notes)


def test_cards_that_share_matrices_alone_have_no_replicas():
    assert not any("Replicas" in note for note in estimate_memory(DEEP, training(tensor=4), count=4).notes)
