"""What the workspace's files say about the cursor: an index on disk, and the questions to it.

It knows no host and no pygls.
"""
