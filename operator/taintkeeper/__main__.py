"""Makes ``python -m taintkeeper`` the same as the ``taintkeeper`` command."""

import sys

from taintkeeper.cli import main

sys.exit(main())
