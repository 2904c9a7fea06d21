"""Readers of text encoders and of encoder-decoders."""
