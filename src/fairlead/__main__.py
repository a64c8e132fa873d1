"""`python -m fairlead` is the same as `fairlead`."""

import sys

from fairlead.cli.main import main

sys.exit(main())
