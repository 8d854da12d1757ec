"""The lock file must install anywhere: from the public index, without anything of the machine it was made on."""

import tomllib

from tests.house.sources import ROOT

PUBLIC_INDEX = "https://pypi.org/simple"
PUBLIC_FILES = "https://files.pythonhosted.org/"


def test_lock_when_read_then_names_only_the_public_index() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    for package in packages:
        if package["name"] == "interpulse":
            assert package["source"] == {"editable": "."}
            continue
        assert package["source"] == {"registry": PUBLIC_INDEX}
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files
        assert all(file["url"].startswith(PUBLIC_FILES) and file["hash"].startswith("sha256:") for file in files)
