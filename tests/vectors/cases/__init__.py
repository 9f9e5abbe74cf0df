"""The cases, by theme. Literal values in `due` are reasoned from the contract by hand;
the model must agree."""
