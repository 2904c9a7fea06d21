"""What a step of training keeps in Megatron-LM."""
