"""Time of inference: reading the prompt, generating the answer, and serving many requests."""
