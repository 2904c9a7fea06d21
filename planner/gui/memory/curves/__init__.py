"""Memory curve over one number of the plan, such as the batch size."""
