"""Run the loop: `python -m examples.loop -o runs/loop --seed 0 [--scale quick]`."""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def main():
    """Read the options and run."""
    from examples.loop.run import run
    from examples.loop.scale import SCALES
    from examples.loop.tables import markdown
    from examples.loop.work import Work

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", default="runs/loop", type=Path)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--scale", default="demo", choices=sorted(SCALES))
    parser.add_argument("--threads", default=2, type=int)
    given = parser.parse_args()
    work = Work(given.out.resolve(), given.threads)
    result = run(work, SCALES[given.scale], given.seed)
    work.path("loop.json").write_text(json.dumps(result, indent=2) + "\n")
    text = markdown(result)
    work.path("loop.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
