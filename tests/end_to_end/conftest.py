import sys
from pathlib import Path

# The table of families has one home, benchmarks/, which is not installed.
sys.path.insert(0, str(Path(__file__).parents[2]))
