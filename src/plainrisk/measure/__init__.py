"""The quality of predicted probabilities: metrics, calibration and cut-offs of one model."""
