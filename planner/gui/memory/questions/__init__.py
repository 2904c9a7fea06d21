"""The left column: what is asked about the model, the run and the cards."""
