"""Operators on a tape, with the bytes that they keep and hold counted by hand."""

import pytest

from planner.memory.training.tape import Load, Tape, TapeFormats

PURE = TapeFormats(2, 2, autocast=False)
MIXED = TapeFormats(4, 2, autocast=True)
HALF = TapeFormats(2, 2, autocast=True)
NOTHING = frozenset()


def ran(network, formats=PURE, adapted=None, **options):
    """Return the loads of a network that is written as a function of its tape."""
    tape = Tape(formats, adapted, **options)
    return tape.run(lambda: network(tape))


def peak(loads, images=1, gradient_bytes=0):
    return max(images * one.per_image + one.fixed + gradient_bytes * one.gradients for one in loads)


def test_a_frozen_layer_keeps_nothing_and_holds_what_its_code_refers_to():
    def network(tape):
        x = tape.value(10, 2)
        x = tape.linear(x, 5, 10, "")
        return tape.linear(x, 10, 10, "")

    # Two tokens of 5, then of 10: input and output of each layer, the input freed with its variable.
    found = ran(network, adapted=NOTHING)
    assert peak(found.forward) == 2 * (20 + 20)
    assert found.kept == Load(2 * 20, 0, 0)
    assert found.end == Load(0, 0, 0)


def test_a_trained_layer_keeps_its_input_until_it_has_its_gradients():
    def network(tape):
        x = tape.linear(tape.value(10, 2), 5, 10, "")
        return tape.linear(x, 10, 10, "", bias=False)

    found = ran(network)
    assert found.kept == Load(2 * (10 + 20 + 20), 0, 0)
    # While the second layer runs: both inputs, the output's gradient and its input's.
    assert peak(found.backward) == 2 * (10 + 20 + 20 + 20)
    assert found.end == Load(0, 0, 5 * 10 + 10 + 10 * 10)


def test_autocast_casts_inputs_and_weights_and_the_gradients_of_these():
    def network(tape):
        return tape.linear(tape.norm(tape.linear(tape.value(8, 4), 8, 4, "", bias=False), 8), 4, 4, "", bias=False)

    found = ran(network, MIXED)
    # The cast of the input; the product in 16 bits, in fp32 for the norm, whose result is cast; the last product.
    assert found.kept.per_image == 2 * 8 + 4 * 4 + 2 * 4 + 2 * 4
    assert found.kept.fixed == 2 * (8 * 4 + 4 * 4)
    assert max(one.fixed for one in found.backward) == 2 * 2 * 16  # the last weight's cast, and the gradient's
    assert found.end.gradients == 8 * 4 + 8 + 4 * 4


def test_weights_in_16_bits_are_not_cast():
    assert ran(lambda tape: tape.linear(tape.value(8, 2), 8, 4, ""), HALF).kept.fixed == 0


def test_a_frozen_convolution_keeps_its_input_where_a_gradient_passes():
    def network(tape, *, adapter):
        x = tape.value(8, 2)
        x = tape.linear(x, 4, 4, "adapter") if adapter else x
        return tape.convolution(x, 16, 9 * 4 * 8)

    formats = PURE._replace(adapter=2, rank=1)
    assert ran(lambda tape: network(tape, adapter=False), formats, frozenset({"adapter"})).kept.per_image == 2 * 16
    # The adapter's input, its low rank of one number for each of two tokens, and the convolution's input and output.
    found = ran(lambda tape: network(tape, adapter=True), formats, frozenset({"adapter"}))
    assert found.kept.per_image == 2 * (8 + 2 + 8 + 16)
    assert found.end.gradients == 4 + 4


def test_adapters_in_fp32_read_copies_of_their_own():
    def network(tape):
        return tape.linear(tape.value(8, 2), 4, 4, "adapter")

    adapted = frozenset({"adapter"})
    pure = ran(network, PURE._replace(adapter=4, rank=2), adapted)
    # A copy of the input in fp32, and the low rank; the sum in fp32 is cast to the layer's format.
    assert pure.kept.per_image == 4 * 8 + 4 * 4 + 2 * 8
    cast = ran(network, HALF._replace(adapter=4, rank=2), adapted)
    # Under autocast the copy is cast back, and so are the adapter's weights.
    assert cast.kept.per_image == 2 * 8 + 2 * 4 + 2 * 8
    assert cast.kept.fixed == 2 * (4 * 2 + 2 * 4)
    assert cast.end.gradients == 16


def test_dropout_of_adapters_keeps_a_mask_where_a_gradient_passes():
    def network(tape):
        return tape.linear(tape.linear(tape.value(4, 2), 4, 4, "first"), 4, 4, "second")

    formats = PURE._replace(adapter=2, rank=1)
    plain, dropped = (
        ran(network, each, frozenset({"first", "second"})).kept.per_image
        for each in (formats, formats._replace(dropout=True))
    )
    # Each adapter reads what dropout left of its input, which is not kept for itself; only the second needs a mask.
    assert dropped - plain == 4


def test_products_keep_what_the_other_factors_gradient_needs():
    def network(tape):
        x, gate = tape.split(tape.linear(tape.value(4, 2), 4, 16, "", bias=False), 8, 8)
        return tape.multiply(x, tape.activation(gate))

    found = ran(network)
    # The layer's input, its output of both halves, the activated half, and the product.
    assert found.kept.per_image == 2 * (4 + 16 + 8 + 8)


def test_the_gradient_of_a_broadcast_factor_is_first_as_large_as_the_other():
    def network(tape):
        return tape.multiply(tape.linear(tape.value(8, 2), 8, 8, "", bias=False), tape.parameter(1))

    found = ran(network)
    # Input and output of the layer are kept; the result's gradient, that of the factor and its scratch of full size.
    assert peak(found.backward) == 2 * (8 + 8 + 8 + 8 + 8 + 1)
    assert found.end.gradients == 8 * 8 + 1


def test_a_sum_hands_on_its_gradient_and_gradients_are_added_in_place():
    def network(tape):
        x = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        return tape.add(x, tape.scaled(x))

    found = ran(network)
    assert found.kept.per_image == 2 * (4 + 4)
    # The layer's input and the sum's gradient; that of the scaled tensor, added to the other in place.
    assert peak(found.backward) == 2 * (4 + 4 + 4)


def test_a_gradient_that_two_nodes_wait_for_is_not_added_to_in_place():
    def network(tape):
        x = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        y = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        return tape.add(tape.add(x, y), x)

    # The gradient is the same for all three uses, so that the sum of two of them is a third tensor.
    assert peak(ran(network).backward) == 2 * (4 + 4 + 4 + 4)


def test_parts_of_a_tensor_have_gradients_of_all_of_it():
    def network(tape):
        x = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        return tape.concatenate(tape.part(x, 1), tape.part(x, 3))

    # The layer's input, the gradient of both parts, and one of full size for each.
    assert peak(ran(network).backward) == 2 * (4 + 4 + 4 + 4)


def test_attention_keeps_its_inputs_its_result_and_the_sums_of_its_softmax():
    def network(tape):
        x = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        return tape.resized(tape.attention(x, x, x, 3), 4)

    assert ran(network).kept.per_image == 2 * (4 + 4 + 4 + 4) + 4 * 3
    assert ran(lambda tape: tape.attention(*[tape.value(4, 2)] * 3, 3), adapted=NOTHING).kept.per_image == 2 * 4


def test_a_checkpointed_block_keeps_its_inputs_and_is_computed_again():
    def block(tape, x):
        return (tape.activation(tape.linear(tape.activation(x), 4, 4, "", bias=False)),)

    def network(tape):
        x = tape.linear(tape.value(4, 2), 4, 4, "", bias=False)
        for _ in range(3):
            x = tape.checkpoint(lambda each: block(tape, each), x)[0]
        return x

    plain, saved = ran(network), ran(network, checkpointed=True)
    # The input of the first layer, the block's input and two tensors inside for each of three blocks; the result.
    assert plain.kept.per_image == 2 * (4 + 3 * 12 + 4)
    assert saved.kept.per_image == 2 * (4 + 3 * 4 + 4)
    assert saved.end.gradients == plain.end.gradients == 4 * 16
    # The last block, computed again beside all inputs and the result's gradient: two tensors kept and the result.
    assert peak(saved.backward) == 2 * (4 + 3 * 4 + 4 + 8 + 4)


def test_a_checkpointed_block_without_a_gradient_is_not_computed_again():
    def network(tape):
        x = tape.checkpoint(lambda each: (tape.activation(each),), tape.value(4, 2))[0]
        return tape.convolution(x, 4, 9)

    assert ran(network, adapted=NOTHING, checkpointed=True).kept.per_image == 2 * 4


def test_a_block_may_leave_an_output_without_a_gradient():
    def network(tape):
        inner = tape.parameter(4)
        first, _ = tape.checkpoint(lambda each: (tape.add(each, tape.parameter(4)), tape.value(4, 2)), inner)
        return tape.linear(first, 4, 4, "", bias=False)

    assert ran(network, checkpointed=True).end.gradients == 4 + 4 + 16


def test_only_the_loads_that_decide_for_some_number_of_images_are_told():
    def network(tape):
        x = tape.linear(tape.value(1, 4), 1, 100, "", bias=False)
        return tape.linear(tape.linear(x, 100, 1, "", bias=False), 1, 1, "", bias=False)

    found = ran(network, MIXED)
    for images in (1, 7, 1_000_000):
        assert peak(found.backward, images, 4) >= peak(found.backward, images)
    assert len(found.backward) < 8


@pytest.mark.parametrize("width", [2, 4])
def test_a_value_in_the_format_that_is_asked_for_is_itself(width):
    tape = Tape(PURE, NOTHING)
    value = tape.value(4, width)
    assert (tape.cast(value, 4) is value) == (width == 4)
