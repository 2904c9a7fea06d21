"""Recordings and live readings as runs of experiment trackers: TensorBoard, MLflow and Weights & Biases."""
