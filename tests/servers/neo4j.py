"""Neo4j Community, from Maven's artefacts, run by the machine's Java.

Belongs here: fetching and starting it. Does not belong here: Cypher.
"""

import os
import shutil
import socket
from pathlib import Path

from memory_pipelines.local import processes
from servers import cache
from servers.running import Place, Running, launch

NAME = "neo4j"
VERSION = "5.26.30"
PINNED = "dbc6c8de8101e5a27b7d12701525f902d5ee779ea60598568b04000180024556"
"""Over all jars (``cache.digest``)."""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
USER, DATABASE = "neo4j", "neo4j"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>servers</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.neo4j.app</groupId><artifactId>neo4j-server</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version></dependency>
</dependencies>
</project>
"""
CONNECT_SECONDS = 3.0
"""A connection made while the server comes up is never answered."""
OPEN = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")


def fetch() -> Path:
    """The folder of its jars."""
    return cache.kept(f"neo4j-{VERSION}", _fill)


def _fill(folder: Path) -> None:
    if shutil.which("mvn") is None or shutil.which("java") is None:
        cache.apt(NAME, "maven", "openjdk-17-jre-headless")
    (folder / "pom.xml").write_text(POM)
    repository = folder / "repository"
    command = ["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}", COPY]
    options = [f"-DoutputDirectory={folder / 'lib'}", "-DincludeScope=runtime"]
    cache.run(NAME, [*command, *options], f"Maven must reach org.neo4j:neo4j:{VERSION}", cwd=folder)
    shutil.rmtree(repository)
    cache.check(NAME, cache.digest((folder / "lib").glob("*.jar")), PINNED)


def start(place: Place) -> Running:
    """Bolt with TLS alone, the first user's password changed."""
    lib = fetch() / "lib"
    port = processes.free_port(())
    configuration, certificates = place.folder / "conf", place.folder / "certificates"
    configuration.mkdir()
    certificates.mkdir()
    shutil.copy(place.certificate, certificates / "public.crt")
    shutil.copy(place.key, certificates / "private.key")
    lines = {
        "server.default_listen_address": "127.0.0.1",
        "server.bolt.listen_address": f"127.0.0.1:{port}",
        "server.bolt.tls_level": "REQUIRED",
        "server.http.enabled": "false",
        "server.https.enabled": "false",
        "dbms.ssl.policy.bolt.enabled": "true",
        "dbms.ssl.policy.bolt.base_directory": certificates,
        "dbms.ssl.policy.bolt.private_key": "private.key",
        "dbms.ssl.policy.bolt.public_certificate": "public.crt",
        "dbms.ssl.policy.bolt.client_auth": "NONE",
        "dbms.usage_report.enabled": "false",
        "server.memory.pagecache.size": "128m",
    }
    (configuration / "neo4j.conf").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    command = [
        "java",
        "-Xms256m",
        "-Xmx512m",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN),
        "-cp",
        f"{lib}/*",
        "org.neo4j.server.CommunityEntryPoint",
        f"--home-dir={place.folder}",
        f"--config-dir={configuration}",
    ]
    settings = {
        "neo4j_url": f"bolt+s://127.0.0.1:{port}",
        "neo4j_user": USER,
        "neo4j_password": place.password,
        "neo4j_database": DATABASE,
    }
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    return launch(
        NAME, command, place.folder, lambda: _answer(port, place), settings, environment | {"LC_ALL": "C.UTF-8"}
    )


def _answer(port: int, place: Place) -> str:
    """Change the first password, or find it changed; the server's version."""
    import neo4j

    socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS).close()
    trust = neo4j.TrustCustomCAs(str(place.authority))
    for password in (USER, place.password):
        with neo4j.GraphDatabase.driver(
            f"bolt://127.0.0.1:{port}",
            auth=(USER, password),
            encrypted=True,
            trusted_certificates=trust,
            connection_timeout=CONNECT_SECONDS,
        ) as driver:
            try:
                if password == USER:
                    with driver.session(database="system") as session:
                        change = "ALTER CURRENT USER SET PASSWORD FROM $old TO $new"
                        session.run(change, old=USER, new=place.password).consume()
                else:
                    with driver.session(database=DATABASE) as session:
                        session.run("RETURN 1").consume()
                    return str(driver.get_server_info().agent)
            except neo4j.exceptions.AuthError:
                if password != USER:
                    raise
    raise AssertionError("unreachable")
