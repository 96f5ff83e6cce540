"""`python -m react_text` is the same as `react-text`."""

import sys

from .cli import main

sys.exit(main())
