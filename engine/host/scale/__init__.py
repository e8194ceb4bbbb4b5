"""Several hosts under one address, on one machine or many: the extra `scale`, on Ray Serve."""
