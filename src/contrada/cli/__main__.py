"""`python -m contrada.cli`."""

import sys

from contrada.cli import main

sys.exit(main())
