"""Memory of inference: weights, KV cache, and the temporary tensors of prefill and decoding."""
