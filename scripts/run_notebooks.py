"""Run the notebooks of the documentation and store their outputs: run_notebooks.py [FILE ...]"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run_notebook(path: Path, timeout: int = 600) -> nbformat.NotebookNode:
    """The notebook with the outputs of a new run, in an empty folder; an error of a cell is raised.

    What changes from run to run without being a result is left out: counters, times, versions.
    """
    book = nbformat.read(path, as_version=4)
    kept = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)  # the kernel takes this checkout
    try:
        with tempfile.TemporaryDirectory(prefix="optexp-notebook-") as folder:
            client = NotebookClient(
                book,
                timeout=timeout,
                kernel_name="python3",
                resources={"metadata": {"path": folder}},
            )
            client.execute()
    finally:
        if kept is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = kept
    for cell in book.cells:
        cell.metadata.clear()
    book.metadata.pop("language_info", None)
    return book


def main(paths: list[str]) -> None:
    for path in [Path(path) for path in paths] or NOTEBOOKS:
        nbformat.write(run_notebook(path), path)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
