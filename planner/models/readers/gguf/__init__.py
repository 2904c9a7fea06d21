"""Readers of the GGUF files of llama.cpp."""
