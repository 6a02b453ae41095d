"""How good predicted probabilities are: metrics, calibration and cut-offs of one model."""
