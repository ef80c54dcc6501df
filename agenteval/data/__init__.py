"""Data that travel with the package: criteria bank and calibration constants."""
