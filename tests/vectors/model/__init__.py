"""The contract once more, slow and exact, for computing what is due. Shares
nothing with the engine."""
