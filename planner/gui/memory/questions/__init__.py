"""The left column of the Memory tab: questions about the model, the run and the cards."""
