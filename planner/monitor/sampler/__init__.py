"""The sampler: the only process that calls the driver."""
