"""`python -m patchq`."""

import sys

from patchq.cli import main

sys.exit(main())
