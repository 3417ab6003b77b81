"""Says which ratio got worse by more than 25 % against benchmarks/baseline.json.

    optexp bench all --quick --json figures.json
    python benchmarks/worse.py figures.json            # exit code 1 if one did
    python benchmarks/worse.py figures.json --keep     # these are the baseline from now on

Ratios depend on the machine too: keep a baseline of the machine that you compare on.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from optexp_jax.bench.baseline import compare_ratios, read_baseline, watched_ratios, write_baseline

BASELINE = Path(__file__).parent / "baseline.json"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", type=Path, help="what optexp bench --json wrote")
    parser.add_argument("--baseline", type=Path, default=BASELINE, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="make these the baseline")
    options = parser.parse_args(argv)
    document = json.loads(options.figures.read_text(encoding="utf-8"))
    if options.keep:
        write_baseline(options.baseline, document)
        print(f"{options.baseline} has {len(watched_ratios(document))} ratios now.")
        return 0
    found = compare_ratios(read_baseline(options.baseline), watched_ratios(document))
    for change in found.worse:
        print(f"worse: {change}")
    for name in found.missing:
        print(f"not measured: {name}")
    for name in found.new:
        print(f"not in the baseline: {name}")
    print(f"{len(found.changes)} ratios compared, {len(found.worse)} worse by more than 25 %.")
    return 1 if found.worse else 0


if __name__ == "__main__":
    sys.exit(main())
