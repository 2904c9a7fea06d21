"""Time of inference: processing the prompt, generating the answer, and serving many requests."""
