"""Temporary tensors of one layer in inference, by hand."""

from small_models import DEEPSEEK, GPT2, LLAMA, MIXTRAL, llama, other, small_llama

from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.inference.scratch import DecodeCopy, largest_decode_copy, scratch_bytes
from planner.memory.precision import Precision
from planner.models.architecture import StateMixer

BF16 = Precision(2, 2, 2, autocast=False)


def test_a_layer_of_states_alone_has_scratch_but_no_cache():
    model = small_llama()
    mixer = StateMixer(name="mamba2", conv_state_elements=1, recurrent_state_elements=1, inner_dim=1000)
    group = model.main.groups[0]
    bare = group.layer.evolve(mixer=mixer, feed_forward=None)
    only = model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=bare),)),))
    assert kv_cache_term(only, 1, 10, 0, "bf16") is None
    assert scratch_bytes(only, 2, 10, BF16, "sdpa") == 2 * 10 * (3 * 64 + 4 * 1000) * 2
    assert largest_decode_copy(only, 10, BF16, "sdpa") == DecodeCopy(0, 0)


def test_scratch_is_of_the_widest_block_and_does_not_add_up_over_layers():
    # 4h beside gate, up and their product: (4 · 4096 + 3 · 11008) · 2 B a token
    shallow, deep = llama(num_hidden_layers=2), llama(num_hidden_layers=80)
    assert scratch_bytes(shallow, 2, 100, BF16, "sdpa") == 2 * 100 * (4 * 4096 + 3 * 11_008) * 2
    assert scratch_bytes(deep, 2, 100, BF16, "sdpa") == scratch_bytes(shallow, 2, 100, BF16, "sdpa")


def test_scratch_of_an_activation_that_python_computes():
    gpt2 = other("gpt2", GPT2)
    assert scratch_bytes(gpt2, 1, 10, BF16, "sdpa") == 10 * (4 * 768 + 4 * 3072) * 2
    # a squared ReLU: its input, the ReLU and the square
    nemotron = other("nemotron", LLAMA)
    assert scratch_bytes(nemotron, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 3 * 11_008) * 2


def test_scratch_of_one_projection_for_gate_and_up():
    phi3 = other("phi3", LLAMA)
    assert scratch_bytes(phi3, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 4 * 11_008) * 2


def test_scratch_of_experts():
    # each of two visits: its input and gate and up and two products, 4i + h
    mixtral = other("mixtral", MIXTRAL)
    assert scratch_bytes(mixtral, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 2 * (4 * 14_336 + 4096)) * 2


def test_scratch_of_experts_behind_an_fp32_router():
    # each of four visits: its input and output in bf16, and twice the weighted output in fp32
    deepseek = other("deepseek_v3", DEEPSEEK)
    visits = 4 * 2 * 7168 * (2 + 4)
    assert scratch_bytes(deepseek, 1, 10, BF16, "sdpa") == max(
        10 * (4 * 7168 * 2 + visits), 10 * 2 * (3 * 7168 + 3 * 128 * 192 + 128 * 256 + 128 * 128 + 2 * 576)
    )


def test_eager_scores_grow_with_the_square_of_the_prompt():
    # 3h beside queries and scores: their fp32 copy and softmax beside them, 10 B for each of a · s, and the mask b · s²
    model = llama()
    per_token = 2 * (3 * 4096 + 4096) + 32 * 2000 * 10
    assert scratch_bytes(model, 2, 2000, BF16, "eager") == 2 * 2000 * per_token + 2 * 2000 * 2000 * 2
    # A softmax in fp32 reads scores in fp16 as they are: beside both is only what it is cast to.
    half = BF16._replace(half=True)
    assert scratch_bytes(model, 2, 2000, half, "eager") == 2 * 2000 * (per_token - 32 * 2000 * 2 + 2000 * 2)


def test_attention_that_names_its_outputs_holds_them_all_at_its_end():
    # fp32: 3h, the projections 3q and four outputs beside both scores, the softmax and that of the layer before
    shape = {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}
    bloom, fp32 = other("bloom", shape), Precision(4, 4, 4, autocast=False)
    per_token = 4 * (3 * 64 + 7 * 64 + 4 * 4 * 1000)
    assert scratch_bytes(bloom, 2, 1000, fp32, "sdpa") == 2 * 1000 * per_token + 2 * 1000 * 1000 * 4
    # bf16: at the softmax, beside 3q and the queries' copy: four in bf16 (14 B with the fp32 copy and the softmax)
    per_token = 2 * (3 * 64 + 4 * 64) + 4 * 1000 * (2 + 4 + 4 + 2 * 2)
    assert scratch_bytes(bloom, 2, 1000, BF16, "sdpa") == 2 * 1000 * per_token + 2 * 1000 * 1000 * 2
    # MPT fills booleans into the scores, which take their name: one copy less
    shape = {"d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "max_seq_len": 1024}
    per_token = 4 * (3 * 64 + 5 * 64 + 3 * 4 * 1000)
    assert scratch_bytes(other("mpt", shape), 2, 1000, fp32, "sdpa") == 2 * 1000 * per_token + 2 * 1000 * 1000


def test_a_norm_inside_the_feed_forward_block_copies_its_input_to_fp32():
    # BitNet: the product in bf16, its copy and that scaled in fp32; in fp32 no copy, and gate, up and product are wider
    bitnet, fp32 = other("bitnet", LLAMA), Precision(4, 4, 4, autocast=False)
    assert scratch_bytes(bitnet, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 * 2 + 11_008 * (2 + 4 + 4))
    assert scratch_bytes(bitnet, 1, 10, fp32, "sdpa") == 10 * (4 * 4096 + 3 * 11_008) * 4


def test_code_that_names_what_it_no_longer_needs_holds_it():
    # StableLM's first norm and attention output, unless its blocks are parallel
    plain, parallel = (other("stablelm", LLAMA, use_parallel_residual=side) for side in (False, True))
    assert scratch_bytes(plain, 1, 10, BF16, "sdpa") == 10 * (6 * 4096 + 3 * 11_008) * 2
    assert scratch_bytes(parallel, 1, 10, BF16, "sdpa") == 10 * (4 * 4096 + 3 * 11_008) * 2


def test_repeated_heads_of_eager_attention():
    grouped, full = llama(num_key_value_heads=8), llama()
    more = scratch_bytes(grouped, 1, 2000, BF16, "eager") - scratch_bytes(full, 1, 2000, BF16, "eager")
    assert more == 2000 * 2 * 2 * 4096
    assert largest_decode_copy(grouped, 100, BF16, "eager") == DecodeCopy(100, 8 * 128 + 2 * 4096)


def test_decoding_copies_one_layers_keys():
    assert largest_decode_copy(llama(num_key_value_heads=8), 1000, BF16, "sdpa") == DecodeCopy(1000, 8 * 128)
    assert largest_decode_copy(other("mistral", LLAMA, sliding_window=64), 1000, BF16, "sdpa") == DecodeCopy(64, 4096)
    wide = llama(head_dim=320)
    assert largest_decode_copy(wide, 10, BF16, "sdpa") == DecodeCopy(10, 32 * 320)
    repeated = largest_decode_copy(llama(head_dim=320, num_key_value_heads=8), 10, BF16, "sdpa")
    assert repeated == DecodeCopy(10, 8 * 320 + 2 * 32 * 320)


def test_decoding_expands_the_latent_of_every_cached_token():
    copied = largest_decode_copy(other("deepseek_v3", DEEPSEEK), 1000, BF16, "sdpa")
    assert copied == DecodeCopy(1000, 512 + 128 * (128 + 128) + 128 * (128 + 64))
    assert copied.total == 1000 * 57_856


def test_scores_of_fp32_copies_are_in_fp32():
    # GPT-J: 3h, queries and the fp32 copies of queries and keys, beside scores and softmax in fp32 and the
    # probabilities of the layer before in the format of the stream
    gptj = other("gptj", {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "vocab_size": 100})
    per_token = 2 * (3 * 64 + 64) + 2 * 4 * 64 + 4 * 1000 * (4 + 4 + 2)
    assert scratch_bytes(gptj, 2, 1000, BF16, "eager") == 2 * 1000 * per_token + 2 * 1000 * 1000 * 2
    per_token = 4 * (3 * 64 + 64) + 4 * 1000 * (4 + 4 + 4)
    fp32 = Precision(4, 4, 4, autocast=False)
    assert scratch_bytes(gptj, 2, 1000, fp32, "eager") == 2 * 1000 * per_token + 2 * 1000 * 1000 * 4


def test_a_clamped_gate_holds_nine_tensors():
    # gpt-oss: gate and up with their biases' rows (2 · 2i), both clamped, and three of the gate's steps
    mixtral = other("mixtral", MIXTRAL)
    group = mixtral.main.groups[0]
    block = group.layer.feed_forward.evolve(activation="clamped-swiglu")
    clamped = mixtral.main.evolve(groups=(group.evolve(layer=group.layer.evolve(feed_forward=block)),))
    expected = 10 * (4 * 4096 + 2 * (9 * 14_336 + 4096)) * 2
    assert scratch_bytes(mixtral.evolve(stacks=(clamped,)), 1, 10, BF16, "sdpa") == expected
