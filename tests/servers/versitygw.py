"""Versity's S3 gateway over a folder: signatures are checked, conditional writes obeyed. Built by Go.

Belongs here: fetching and starting it. Does not belong here: an object.
"""

import os
import shutil
from pathlib import Path

from memory_pipelines.local import processes
from servers import cache
from servers.running import Place, Running, launch

NAME = "versitygw"
VERSION = "1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
ACCESS_KEY = "memory-pipelines"
REGION = "us-east-1"


def fetch() -> Path:
    """Its program; Go's checksum database vouches for the sources."""
    return cache.kept(f"versitygw-{VERSION}", _fill) / "versitygw"


def _fill(folder: Path) -> None:
    work = folder / "go"
    environment = cache.environment(GOBIN=str(folder), GOPATH=str(work), GOCACHE=str(work / "cache"), GOWORK="off")
    command = ["go", "install", "-trimpath", "-modcacherw", MODULE]
    cache.run(NAME, command, f"Go 1.24 or later must reach {MODULE}", env=environment, cwd=folder)
    shutil.rmtree(work)


def start(place: Place) -> Running:
    """TLS only; one access key with its secret. Objects are files on a disk with extended attributes."""
    port, data = processes.free_port(()), place.folder / "data"
    data.mkdir()
    command = [str(fetch()), "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"]
    command += ["--cert", str(place.certificate), "--key", str(place.key), "posix", str(data)]
    secret = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": place.password}
    url = f"https://127.0.0.1:{port}"
    settings = {"s3_url": url, "s3_access_key": ACCESS_KEY, "s3_secret_key": place.password, "s3_region": REGION}
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.folder)} | secret
    return launch(NAME, command, place.folder, lambda: _answer(settings, place), settings, environment)


def _answer(settings: dict[str, str], place: Place) -> str:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=settings["s3_url"],
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=place.password,
        region_name=REGION,
        verify=str(place.authority),
    )
    client.list_buckets()
    client.close()
    return VERSION
