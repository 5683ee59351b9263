"""The embedded servers that come in wheels: started, watched and stopped for one home folder.

Belongs here: processes on this machine, all bound to 127.0.0.1. Does not belong here: adapters
(``stores``); to them an embedded server is a server like any other.
"""

from memory_pipelines.local.supervisor import Endpoints, ServerStatus, down, status, up

__all__ = ["Endpoints", "ServerStatus", "down", "status", "up"]
