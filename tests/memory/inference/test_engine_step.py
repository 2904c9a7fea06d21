"""Activations of an engine's largest step, by hand."""

from small_models import DEEPSEEK, MIXTRAL, llama, other
from vllm_cases import with_states

from planner.memory.inference.engine_step import engine_step_term


def test_a_step_holds_the_widest_layer():
    assert engine_step_term(llama(), 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    # Attention is the widest: queries, keys, values and its result, of 4,096 elements each, beside 3 · 1,000.
    narrow = llama(intermediate_size=1_000)
    assert engine_step_term(narrow, 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 4 * 4096)
    experts = 2 * (2 * 14_336 + 14_336) + 4096 + 8
    assert engine_step_term(other("mixtral", MIXTRAL), 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + experts)
    latent = 2 * 128 * 192 + 128 * 256 + 128 * 128 + 576
    assert engine_step_term(other("deepseek_v3", DEEPSEEK), 10, 2, "max_num_tokens").bytes == 10 * 2 * (
        2 * 7168 + latent
    )
    states = with_states(1, 1, conv_state_elements=1, recurrent_state_elements=1)
    assert engine_step_term(states, 10, 2, "max_num_tokens").bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    group = states.main.groups[0]
    bare = group.evolve(layer=group.layer.evolve(feed_forward=None))
    assert engine_step_term(
        states.evolve(stacks=(states.main.evolve(groups=(bare,)),)), 10, 2, "max_num_tokens"
    ).bytes == 20 * (8192 + 256)
