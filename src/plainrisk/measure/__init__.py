"""How good models are: metrics of one, rank tests of several."""
