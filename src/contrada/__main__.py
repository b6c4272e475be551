"""`python -m contrada`."""

import sys

from contrada.cli import main

sys.exit(main())
