"""The operations of a step in PyTorch, for devices that Triton has no kernels for.

They keep the contracts of the folders beside this one, as the references do, but are made to be
used: nothing waits for the device, since the host knows the rows of its own step (`kernels.step_rows`), and
the matrices are multiplied in the type that they are held in. So nothing of it can be captured.

A row has the same bits whatever other rows ride along where the device's own products, sums and
maxima treat rows alike at one shape: steps of up to 16 rows are padded to 16, and attention adds up
keys in chunks of 128 text positions, each by products of one shape. Whether a device does is for a
check on the device to find.
"""
