import sys
from pathlib import Path

# benchmarks/ is not installed.
sys.path.insert(0, str(Path(__file__).parents[2]))
