"""The adapters of running servers, whichever they are, for tests that open them by themselves.

Belongs here: settings → adapter or raw client, with the settings' authority. Does not belong here: starting a server.
"""

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memory_pipelines.settings import Settings

if TYPE_CHECKING:
    import redis

    from memory_pipelines.stores.cold import S3Cold
    from memory_pipelines.stores.graph import Neo4jGraph
    from memory_pipelines.stores.hot import RedisHot
    from memory_pipelines.stores.lake import DeltaLake
    from memory_pipelines.stores.vectors import MilvusVectors


def vectors(at: Settings, collection: str) -> "MilvusVectors":
    from memory_pipelines.stores.vectors import MilvusVectors

    return MilvusVectors(at.milvus_url, at.milvus_token, collection, at.ca_file)


def graph(at: Settings) -> "Neo4jGraph":
    from memory_pipelines.stores.graph import Neo4jGraph

    return Neo4jGraph(at.neo4j_url, at.neo4j_user, at.neo4j_password, at.neo4j_database, at.ca_file)


def hot(at: Settings) -> "RedisHot":
    from memory_pipelines.stores.hot import RedisHot

    return RedisHot(at.redis_url, at.ca_file)


def cold(at: Settings, bucket: str) -> "S3Cold":
    from memory_pipelines.stores.cold import S3Cold

    return S3Cold(at.s3_url, bucket, at.s3_access_key, at.s3_secret_key, at.s3_region, at.ca_file)


def lake(at: Settings, bucket: str) -> "DeltaLake":
    """A lake in a bucket, which is made. Delta's client takes its authority from the environment: SSL_CERT_FILE."""
    from memory_pipelines.stores.lake import DeltaLake

    store = cold(at, bucket)
    store.ensure()
    store.close()
    options = {
        "AWS_ENDPOINT_URL": at.s3_url,
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key,
        "AWS_REGION": at.s3_region,
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "aws_conditional_put": "etag",
    }
    return DeltaLake(f"s3://{bucket}/lake", options)


def postgres(at: Settings, database: str = "") -> sa.URL:
    """The relational store's URL, or that of another database of its server; with the authority in it."""
    url = sa.make_url(at.postgres_url)
    if at.ca_file:
        url = url.update_query_dict({"sslrootcert": at.ca_file})
    return url.set(database=database) if database else url


def text(url: sa.URL) -> str:
    return url.render_as_string(hide_password=False)


def redis_client(at: Settings) -> "redis.Redis":
    import redis

    options = {"ssl_ca_certs": at.ca_file} if at.ca_file else {}
    return redis.Redis.from_url(at.redis_url, **options)


def milvus_client(at: Settings) -> Any:
    from pymilvus import MilvusClient

    options = {"server_pem_path": at.ca_file} if at.ca_file else {}
    return MilvusClient(at.milvus_url, token=at.milvus_token, dedicated=True, timeout=60, **options)
