"""The hot store: Redis 7 or later, or Valkey, through the redis client.

Belongs here: key names, expiry and the driver's errors. Does not belong here: what is cached.
Whatever is lost is made again by whoever wrote it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner, stable_hash
from memory_pipelines.stores import checks, tls

if TYPE_CHECKING:
    import redis

SETTING = "MEMORY_PIPELINES_REDIS_URL"
SECONDS = 5.0


class RedisHot:
    """Values under ``mp:{<owner key>}:<tenant hash>:v:<name>``, their names in one set beside them.

    The braces make one cluster slot of a person. A value whose name is not in the set is not
    there: ``delete`` holds even if the server evicted the set and kept a value until its expiry.
    """

    def __init__(self, url: str, ca_file: str = "") -> None:
        self._url = url
        self._ca_file = ca_file
        self._connected: redis.Redis | None = None

    def get(self, owner: Owner, name: str) -> bytes | None:
        with self._answering() as client, client.pipeline(transaction=True) as pipe:
            pipe.sismember(_names(owner), name)
            pipe.get(_value(owner, name))
            known, value = pipe.execute()
        return bytes(value) if known and value is not None else None

    def put(self, owner: Owner, name: str, value: bytes, ttl_seconds: int) -> None:
        ttl = checks.ttl(ttl_seconds)
        with self._answering() as client, client.pipeline(transaction=True) as pipe:
            pipe.set(_value(owner, name), value, ex=ttl)
            pipe.sadd(_names(owner), name)
            # the set lives as long as its longest value: NX gives a first expiry, GT only lengthens it
            pipe.expire(_names(owner), ttl, nx=True)
            pipe.expire(_names(owner), ttl, gt=True)
            pipe.execute()

    def delete(self, owner: Owner) -> None:
        with self._answering() as client:
            names = client.smembers(_names(owner))
            client.delete(*(_value(owner, name) for name in sorted(names)), _names(owner))

    def held(self, owner: Owner) -> int:
        with self._answering() as client:
            return sum(1 for _ in client.scan_iter(match=_prefix(owner) + b"v:*", count=1000))

    def wipe(self, owner: Owner) -> None:
        with self._answering() as client:
            for key in list(client.scan_iter(match=_prefix(owner) + b"*", count=1000)):
                client.delete(key)

    def count(self) -> int:
        """Values of all owners; walks the whole key space, for health checks only."""
        with self._answering() as client:
            return sum(1 for _ in client.scan_iter(match="mp:{*}:*:v:*", count=1000))

    def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    @contextmanager
    def _answering(self) -> Iterator["redis.Redis"]:
        """The client; the driver's errors leave as the library's."""
        import redis
        from redis import exceptions

        try:
            if self._connected is None:
                trusted = self._ca_file and self._url.startswith("rediss://")
                options = {"ssl_ca_certs": tls.authority(self._ca_file)} if trusted else {}
                self._connected = redis.Redis.from_url(
                    self._url,
                    socket_connect_timeout=SECONDS,
                    socket_timeout=SECONDS,
                    health_check_interval=30,
                    **options,
                )
            yield self._connected
        except ValueError:
            raise SettingError(f"{SETTING} is no URL of a Redis server") from None
        except (exceptions.AuthenticationError, exceptions.NoPermissionError):
            raise SettingError(f"the hot store refuses the user or password of {SETTING}") from None
        except (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.OutOfMemoryError) as error:
            if refused := tls.distrusted("hot", error):
                raise refused from None
            raise StoreUnavailableError("hot", SETTING, type(error).__name__) from None
        except exceptions.RedisError as error:
            raise PermanentError(f"the hot store refuses a request ({type(error).__name__})") from None


def _prefix(owner: Owner) -> bytes:
    return f"mp:{{{owner.key}}}:{stable_hash('tenant', owner.tenant)}:".encode()


def _names(owner: Owner) -> bytes:
    return _prefix(owner) + b"names"


def _value(owner: Owner, name: str | bytes) -> bytes:
    return _prefix(owner) + b"v:" + (name if isinstance(name, bytes) else name.encode())
