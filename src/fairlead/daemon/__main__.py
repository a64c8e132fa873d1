"""`python -m fairlead.daemon`: runs the daemon in this process."""

from __future__ import annotations

import os
import sys

from fairlead.daemon.command import main

_FILES = 1024

if __name__ == "__main__":
    os.closerange(3, _FILES)  # what the client had open is not ours to keep open for as long as we live
    sys.exit(main(sys.argv[1:]))
