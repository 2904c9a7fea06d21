"""What PyTorch's autograd keeps for the backward pass, and holds during it, where every parameter is trained."""
