"""Readers of models on the Hugging Face Hub."""
