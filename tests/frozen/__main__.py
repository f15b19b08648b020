"""Write the outputs into a folder, and say which of them differ from those that are kept.

python -m tests.frozen FOLDER           compare with tests/golden/outputs.json
python -m tests.frozen FOLDER --keep    keep these from now on
python -m tests.frozen FOLDER --few     a quick look: three recordings
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.frozen.outputs import digests, parts
from tests.support.real_data import data_folder

KEPT = Path(__file__).resolve().parents[1] / "golden" / "outputs.json"


def write_part(folder: Path, name: str) -> None:
    """Write one part in a process of its own, whose environment is the same everywhere."""
    environment = {
        k: v for k, v in os.environ.items() if k == "REFOLD_X_DATA" or not k.startswith("REFOLD_")
    }
    environment |= {"COLUMNS": "120", "NO_COLOR": "1", "TZ": "UTC", "PYTHONHASHSEED": "0"}
    environment |= {"REFOLD_SCRUB_MEGABYTES": "0"}
    words = [sys.executable, "-m", "tests.frozen.outputs", f"{folder}", name]
    subprocess.run(words, env=environment, check=True)


def main() -> int:
    """Return 1 if an output differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--few", action="store_true")
    given = parser.parse_args()
    if data_folder() is None:
        sys.exit("no real data: put it at ../shared/data or name its folder in REFOLD_X_DATA")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(write_part, given.folder), parts(given.few)))
    found = digests(given.folder)
    if given.keep:
        KEPT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
        return 0
    kept: dict[str, str] = json.loads(KEPT.read_text("utf-8"))
    names = found.keys() if given.few else found.keys() | kept.keys()
    differ = [name for name in sorted(names) if found.get(name) != kept.get(name)]
    print("\n".join(differ) or f"all {len(found)} outputs are equal")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
