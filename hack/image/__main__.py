"""``python -m image`` carries out the Dockerfile in an empty folder, then uses the result as a pod would.

It stands in for ``docker build`` where there is no container engine. The builder's steps run with every absolute path
moved below a folder of their own, which at first holds what the COPY lines name and nothing else. Of that, only what
the final stage copies is kept. It runs as the USER, with the ENV alone, without capabilities, on a read-only root.
It needs root, Linux and the network.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from image.dockerfile import DOCKERFILE, ROOT, Stage, parse_copy, parse_dockerfile
from image.pod import Pod, ProofError, check

ABSOLUTE = re.compile(r"(?<![\w.*$])/(?=\w)")
"""Where an absolute path begins, not where a folder's name ends."""


def main(arguments: list[str] | None = None) -> int:
    """Carry out, check, and return the exit status: 1 when something does not work, 2 when it cannot be tried."""
    parser = argparse.ArgumentParser(prog="python -m image", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--python",
        default="/usr/bin/python3.11",
        metavar="PATH",
        help="stands in for the base image's Python; every user must be able to run it (%(default)s)",
    )
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        print("python -m image: only root can become the image's user", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="taintkeeper-image-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            prove(folder, options.python)
    except (ProofError, OSError, subprocess.CalledProcessError) as error:
        print(f"python -m image: {error}", file=sys.stderr)
        return 1
    print(f"proven in {time.monotonic() - started:.0f} s")
    return 0


def prove(folder: Path, python: str) -> None:
    """Build in the folder and check what was built.

    Raises:
        CalledProcessError: a step of the Dockerfile fails.
        ProofError: the result does not work.
    """
    builder, final = parse_dockerfile(DOCKERFILE.read_text())
    root, tools = folder / "root", folder / "tools"
    subprocess.run([python, "-m", "venv", tools], check=True)
    root.mkdir()
    build(builder, root, tools / "bin")
    keep_only_final(final, root)
    shutil.rmtree(tools)
    check(Pod(final, root, moved_environment(final, root, "/usr/bin:/bin"), folder))


def build(stage: Stage, root: Path, tools: Path) -> None:
    """Carry out the builder's steps below ``root``, with python and pip from ``tools``."""
    environment = moved_environment(stage, root, f"{tools}:/usr/bin:/bin")
    # How packages are reached from this machine is no part of the image.
    environment |= {key: value for key, value in os.environ.items() if key.startswith("PIP_") or "proxy" in key.lower()}
    directory = root
    for keyword, rest in stage.steps:
        if keyword == "WORKDIR":
            directory = root / rest.lstrip("/")
            directory.mkdir(parents=True, exist_ok=True)
        elif keyword == "COPY":
            copy_in(rest, directory)
        elif keyword == "RUN":
            print(f"RUN {rest}", flush=True)
            moved = ABSOLUTE.sub(f"{root}/", rest)
            subprocess.run(["sh", "-ec", moved], cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)


def copy_in(rest: str, directory: Path) -> None:
    """Copy from the repository as COPY does: of a folder, what is in it."""
    copy = parse_copy(rest)
    target = directory / copy.target
    for source in (ROOT / name for name in copy.sources):
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def keep_only_final(final: Stage, root: Path) -> None:
    """Leave below ``root`` only what the final stage copies from the builder, at the path that it had there."""
    built = root.rename(root.with_name("builder"))
    for copy in final.copies():
        for source in copy.sources:
            shutil.copytree(built / source.lstrip("/"), root / copy.target.lstrip("/"), symlinks=True)
    shutil.rmtree(built)


def moved_environment(stage: Stage, root: Path, path: str) -> dict[str, str]:
    """Return the stage's environment, with its paths below ``root`` and ``path`` as the base image's PATH."""
    moved = {key: ABSOLUTE.sub(f"{root}/", value) for key, value in stage.environment().items()}
    return {"PATH": path} | {key: value.replace("$PATH", path) for key, value in moved.items()}


if __name__ == "__main__":
    sys.exit(main())
