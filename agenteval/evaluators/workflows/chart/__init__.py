"""Flowcharts of procedures: read, rendered, checked."""
