"""Training: batches, the loop, its state, and what watches it. Nothing here names a model."""
