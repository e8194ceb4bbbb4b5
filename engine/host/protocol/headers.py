"""What goes round the messages: the version of the protocol, and where a request belongs."""

PROTOCOL_VERSION = 3
PROTOCOL_HEADER = "foregram-protocol"  # another number, or none, is answered with 426
# Where several hosts serve under one address: what has one value of the first goes to one of them;
# each answer names its host in the second, and so does a request that is to go there, too. They
# share no buffers.
SESSION_HEADER = "x-session-id"
REPLICA_HEADER = "foregram-replica"
