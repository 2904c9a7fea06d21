"""The exact peak of any PyTorch module, with no GPU. Only `worker`, which runs in a child process, imports torch."""
