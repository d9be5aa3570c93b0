"""``python -m pymc_bnnvs.cli`` is ``bnnvs``."""

import sys

from pymc_bnnvs.cli import main

if __name__ == "__main__":
    sys.exit(main())
