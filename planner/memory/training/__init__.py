"""Memory of training: snapshots of one optimizer step."""
