"""Several hosts under one address, on one machine or many: the extra `scale`, on Ray Serve.

Ray Serve places the replicas, watches, restarts, replaces and counts them. What is here says which
application a replica serves, and which workspace goes to which replica. Nothing but `cluster`,
`replica` and `router` imports Ray.
"""
