"""Several hosts under one address, on one machine or many: the extra `scale`, on Ray Serve.

Ray Serve places the replicas, watches, restarts and counts them, and keeps each session at one of
them. Only `cluster` and `replica` import Ray.
"""
