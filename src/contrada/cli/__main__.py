"""`python -m contrada.cli`."""

import sys

from contrada.__main__ import main

sys.exit(main())
