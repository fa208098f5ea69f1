"""Whether a server on this machine answers."""

import http.client
import socket
import ssl


def http_ok(port: int, path: str) -> bool:
    return _ok(http.client.HTTPConnection("127.0.0.1", port, timeout=2), path)


def https_ok(port: int, path: str, context: ssl.SSLContext, token: str | None = None) -> bool:
    return _ok(http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context), path, token)


def listens(port: int) -> bool:
    """Of one that has nothing to say to a stranger. An OSError if nobody does."""
    socket.create_connection(("127.0.0.1", port), timeout=2).close()
    return True


def _ok(connection: http.client.HTTPConnection, path: str, token: str | None = None) -> bool:
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status == http.client.OK
    except http.client.HTTPException:
        return False
    finally:
        connection.close()
