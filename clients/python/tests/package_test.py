"""The wheel and the sdist: built, installed in clean environments, and used there. usage: package_test.py SOCKET"""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

import tap

CLIENT = pathlib.Path(__file__).resolve().parent.parent
USE = """
import asyncio, pathlib, sys
import toolgate
from toolgate import Gate
assert str(pathlib.Path(toolgate.__file__)).startswith(sys.prefix), toolgate.__file__

async def main() -> None:
    tool = {"name": "forecast", "inputSchema": {"type": "object", "properties": {"days": {"type": "integer"}}}}
    async with Gate(sys.argv[1], tools=[tool]) as gate:
        checked = await gate.session("package").check("forecast", {"days": "2"})
        print(checked.arguments)

asyncio.run(main())
"""


def run(*argv: object, folder: pathlib.Path) -> str:
    done = subprocess.run([str(one) for one in argv], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}:\n{done.stdout}{done.stderr}"
    return done.stdout


def used_from(made: pathlib.Path, folder: pathlib.Path, socket: str) -> None:
    """Installs one file in an environment that has nothing else, and makes a call from a folder elsewhere."""
    place = folder / ("venv-" + made.suffix.strip("."))
    venv.create(place, with_pip=True)
    run(place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", made, folder=folder)
    listed = run(place / "bin/pip", "list", "--format=freeze", "--disable-pip-version-check", folder=folder)
    assert {line.split("==")[0] for line in listed.split()} <= {"pip", "setuptools", "toolgate-client"}, listed
    (folder / "use.py").write_text(USE)
    assert run(place / "bin/python", "use.py", socket, folder=folder) == "{'days': 2}\n"
    run(sys.executable, "-m", "mypy", "--strict", "--python-executable", place / "bin/python", "use.py", folder=folder)


def test_package(socket: str) -> None:
    """package: wheel and sdist install alone in a clean environment, work there, and are typed"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(CLIENT, folder / "client", ignore=shutil.ignore_patterns("__pycache__", "dist", "*.egg-info", ".mypy_cache"))
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "client", folder=folder)
        wheel, sdist = next(folder.glob("dist/*.whl")), next(folder.glob("dist/*.tar.gz"))
        names = zipfile.ZipFile(wheel).namelist()
        assert "toolgate/py.typed" in names and "toolgate/langchain.py" in names, names
        assert not [one for one in names if "test" in one], names
        used_from(wheel, folder, socket)
        used_from(sdist, folder, socket)


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
