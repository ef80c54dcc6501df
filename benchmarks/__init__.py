"""What is measured: `python -m benchmarks.NAME`, or all by `python -m benchmarks`."""
