"""The cold store: any S3 server, through boto3, addressed by path.

Belongs here: objects by key, batches, pages and the driver's errors. Does not belong here: which
memory is cold. Keys are opaque: a caller never puts a name or text into one.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError, TransientError
from memory_pipelines.stores import checks, tls

SETTING = "MEMORY_PIPELINES_S3_URL"
BATCH = 1000
"""What S3 deletes at most in one request."""
TOGETHER = 8
"""Requests under way at once while objects are archived: each waits for its answer, most of the time."""
SECONDS = 10
REFUSED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "403"})
NO_BUCKET = "the cold store has no bucket MEMORY_PIPELINES_S3_BUCKET"
FULL = frozenset({"InsufficientStorage", "XMinioStorageFull", "StorageFull", "QuotaExceeded", "507"})
MISSING = frozenset({"NoSuchKey", "NoSuchBucket", "404"})


class S3Cold:
    """Objects in one bucket. Reads after writes are consistent, as S3's are. A missing bucket is empty."""

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        access_key: str,
        secret_key: str,
        region: str = "us-east-1",
        ca_file: str = "",
    ) -> None:
        self._endpoint = endpoint
        self._ca_file = ca_file
        self._bucket = bucket
        self._keys = (access_key, secret_key)
        self._region = region
        self._connected: Any = None
        self._connecting = Lock()

    def ensure(self) -> None:
        with self._answering() as client:
            if not self._exists(client):
                # outside us-east-1, S3 wants the region named
                place = {} if self._region == "us-east-1" else {"LocationConstraint": self._region}
                options = {"CreateBucketConfiguration": place} if place else {}
                try:
                    client.create_bucket(Bucket=self._bucket, **options)
                except (client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
                    if not self._exists(client):
                        raise

    def put(self, key: str, value: bytes) -> None:
        from botocore.exceptions import ConnectionError

        checks.object_keys([key])
        with self._answering() as client:
            try:
                client.put_object(Bucket=self._bucket, Key=key, Body=value)
            except ConnectionError:  # so some servers end a request whose body they will not read
                if not self._exists(client):
                    raise SettingError(NO_BUCKET) from None
                raise

    def archive(self, objects: Mapping[str, bytes]) -> None:
        checks.object_keys(objects.keys())
        with ThreadPoolExecutor(TOGETHER) as threads:
            asked = [threads.submit(self._archive, key, value) for key, value in objects.items()]
            try:
                for one in asked:
                    one.result()
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def _archive(self, key: str, value: bytes) -> None:
        self.put(key, value)
        if self.get(key) != value:
            raise TransientError("the cold store does not give back what it was given")

    def get(self, key: str) -> bytes | None:
        from botocore.exceptions import ClientError

        checks.object_keys([key])
        with self._answering() as client:
            try:
                body: bytes = client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except ClientError as error:
                if _code(error) in MISSING:
                    return None
                raise
        return body

    def delete(self, keys: Iterable[str]) -> None:
        found = checks.object_keys(list(keys))
        with self._answering() as client:
            for start in range(0, len(found), BATCH):
                batch = [{"Key": key} for key in found[start : start + BATCH]]
                answer = client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})
                errors = [error for error in answer.get("Errors", []) if error.get("Code") not in MISSING]
                if errors:
                    raise TransientError(f"the cold store kept {len(errors)} of {len(batch)} objects")

    def keys(self, prefix: str = "") -> set[str]:
        from botocore.exceptions import ClientError

        with self._answering() as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            try:
                return {str(item["Key"]) for page in pages for item in page.get("Contents", [])}
            except ClientError as error:
                if _code(error) in MISSING:
                    return set()
                raise

    def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    def _exists(self, client: Any) -> bool:
        from botocore.exceptions import ClientError

        try:
            client.head_bucket(Bucket=self._bucket)
        except ClientError as error:
            if _code(error) in MISSING:
                return False
            raise
        return True

    @contextmanager
    def _answering(self) -> Iterator[Any]:
        """The client; the driver's errors leave as the library's, without their texts."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ParamValidationError

        try:
            yield self._client()
        except (ParamValidationError, ValueError):
            raise SettingError(f"{SETTING} or MEMORY_PIPELINES_S3_BUCKET is not valid") from None
        except ClientError as error:
            code = _code(error)
            if code in REFUSED:
                raise SettingError("the cold store refuses MEMORY_PIPELINES_S3_ACCESS_KEY and ..._SECRET_KEY") from None
            if code in FULL:
                raise PermanentError(f"the disk of the cold store is full ({code}); make room, see {SETTING}") from None
            if code in MISSING:
                raise SettingError(NO_BUCKET) from None
            raise StoreUnavailableError("cold", SETTING, code) from None
        except (HTTPClientError, BotoCoreError) as error:
            if refused := tls.distrusted("cold", error):
                raise refused from None
            raise StoreUnavailableError("cold", SETTING, type(error).__name__) from None

    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        with self._connecting:  # a client may be shared by threads, but not made by several at once
            if self._connected is None:
                self._connected = boto3.client(
                    "s3",
                    endpoint_url=self._endpoint or None,
                    aws_access_key_id=self._keys[0],
                    aws_secret_access_key=self._keys[1],
                    region_name=self._region,
                    verify=tls.authority(self._ca_file) if self._ca_file else None,
                    config=Config(
                        signature_version="s3v4",
                        s3={"addressing_style": "path"},
                        retries={"mode": "standard", "max_attempts": 4},
                        connect_timeout=SECONDS,
                        read_timeout=6 * SECONDS,
                    ),
                )
            return self._connected


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
