"""Several hosts behind one address, on one machine or many, with Ray Serve (extra `scale`)."""
