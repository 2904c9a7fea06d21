"""Readers of decoders: language models that make one token after another."""
