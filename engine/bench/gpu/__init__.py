"""What a GPU does with our kernels and our steps, measured in one run. Knows no terminal."""
