"""`python -m lsp_server` is `foregram`."""

import sys

from lsp_server.cli import main

sys.exit(main())
