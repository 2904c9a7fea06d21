"""Communication of a training step, with the arithmetic."""

import pytest
from small_models import MIXTRAL, llama, other
from timed_steps import step

from planner.hardware.gpu import Gpu
from planner.performance.setting import TimeSetting
from planner.performance.training.communication import mean_copies_sent
from planner.plan.catalog import Catalog
from planner.workload.parallel import Parallel

PLAIN = TimeSetting()


def test_replicas_send_twice_their_gradients_but_for_their_share(h100: Gpu) -> None:
    found = step(llama(), h100, 8, micro_batch=4)
    sent = {one.sent.name: one.sent for one in found.transfers}
    assert set(sent) == {"gradient_exchange"}
    assert sent["gradient_exchange"].bytes == pytest.approx(2 * 7 / 8 * 2 * llama().parameters)


def test_fsdp_sends_half_as_much_again(h100: Gpu) -> None:
    found = step(llama(), h100, 8, gradient_accumulation=3, parallel=Parallel(zero=3))
    sent = {one.sent.name: one.sent.bytes for one in found.transfers}
    once = 7 / 8 * 2 * llama().parameters
    assert sent == {"gradient_exchange": pytest.approx(3 * once), "parameter_gathering": pytest.approx(6 * once)}
    kept = step(llama(), h100, 8, gradient_accumulation=3, parallel=Parallel(zero=3, reshard_after_forward=False))
    assert {one.sent.name: one.sent.bytes for one in kept.transfers}["parameter_gathering"] == pytest.approx(3 * once)


def test_tensor_parallel_cards_add_up_four_times_a_layer(h100: Gpu) -> None:
    found = step(llama(), h100, 4, parallel=Parallel(tensor=4))
    again = step(llama(), h100, 4, parallel=Parallel(tensor=4), activation_checkpointing="full")
    stream = 2048 * 4096 * 2
    (sent,) = [one.sent for one in found.transfers]
    assert sent.bytes == pytest.approx(4 * 32 * 2 * 3 / 4 * stream)
    assert again.transfers[0].sent.bytes == pytest.approx(1.5 * sent.bytes)
    assert found.transfers[0].overlapped_seconds == 0
    hidden = step(llama(), h100, 4, parallel=Parallel(tensor=4, sequence=True), profile="megatron")
    assert hidden.transfers[0].overlapped_seconds > 0


def test_a_ring_passes_keys_and_values_on(h100: Gpu) -> None:
    found = step(llama(), h100, 4, sequence_length=8192, parallel=Parallel(context=4))
    sent = {one.sent.name: one.sent for one in found.transfers}["context_exchange"]
    assert sent.bytes == pytest.approx(3 * 32 * 3 * 2 * (2048 * 4096 * 2))


def test_every_card_of_a_ring_looks_back_over_the_whole_sequence(h100: Gpu) -> None:
    alone = step(llama(), h100, sequence_length=8192)
    shared = step(llama(), h100, 4, sequence_length=8192, parallel=Parallel(context=4))
    assert shared.passes.attention_forward == pytest.approx(alone.passes.attention_forward / 4)


def test_tokens_go_to_their_experts_and_back(h100: Gpu) -> None:
    mixtral = other("mixtral", MIXTRAL)
    found = step(mixtral, h100, 8, parallel=Parallel(expert=8))
    sent = {one.sent.name: one.sent for one in found.transfers}["expert_exchange"]
    assert sent.bytes == pytest.approx(4 * 32 * 2048 * 4096 * 2 * mean_copies_sent(2, 8))
    far = step(mixtral, h100, 16, parallel=Parallel(expert=8), setting=TimeSetting(cards_per_node=4))
    assert {one.sent.name: one.sent for one in far.transfers}["expert_exchange"].seconds > 2 * sent.seconds


def test_tokens_go_to_experts_while_another_micro_batch_is_computed(h100: Gpu) -> None:
    mixtral = other("mixtral", MIXTRAL)
    shown, hidden = (
        step(mixtral, h100, 8, parallel=Parallel(expert=8), setting=TimeSetting(overlaps_experts=overlaps))
        for overlaps in (False, True)
    )
    exchanges = [
        next(one for one in found.transfers if one.sent.name == "expert_exchange") for found in (shown, hidden)
    ]
    assert exchanges[0].exposed_seconds == exchanges[0].sent.seconds == exchanges[1].sent.seconds
    assert exchanges[1].exposed_seconds == 0


def test_latents_go_round_a_ring_instead_of_keys_and_values(h100: Gpu, catalog: Catalog) -> None:
    deepseek = catalog.models.model("deepseek-ai/DeepSeek-V2-Lite")
    found = step(deepseek, h100, 2, parallel=Parallel(context=2))
    sent = {one.sent.name: one.sent for one in found.transfers}["context_exchange"]
    assert sent.bytes == pytest.approx(3 * 27 * 2 * 1024 * 576 * 2)
    assert found.batch.ring_sum_bytes == 10 * 2 * 1024 * (16 * 128) * 27


def test_a_token_goes_once_to_each_place() -> None:
    assert mean_copies_sent(8, 1) == 0
    assert mean_copies_sent(1, 4) == pytest.approx(3 / 4)
    assert mean_copies_sent(100, 4) == pytest.approx(3)


def test_a_parameter_server_takes_all_gradients_by_one_link(h100: Gpu) -> None:
    ring, server = step(llama(), h100, 8), step(llama(), h100, 8, setting=TimeSetting(parameter_server=True))
    (sent,) = [one.sent for one in server.transfers]
    assert sent.seconds == pytest.approx(2 * 8 * 2 * llama().parameters / server.links.host_bytes_per_s)
    assert sent.seconds > ring.transfers[0].sent.seconds
    nodes = step(llama(), h100, 16, setting=TimeSetting(parameter_server=True))
    assert nodes.transfers[0].sent.seconds == pytest.approx(2 * 16 * 2 * llama().parameters / 50e9)
