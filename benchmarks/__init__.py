"""What the speed claims rest on: `python -m benchmarks`, or `make bench`."""
