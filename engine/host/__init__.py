"""One engine process that serves any editor over HTTP. Importing `protocol` loads no torch."""
