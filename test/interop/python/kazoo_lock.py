"""
kazoo's Lock, told to count the nodes of Curator and of Signalbox as well; or the recipe that is named behind the part, as it
is. Its lease is its session.
"""

import json
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

from rounds import answer

part = json.loads(sys.argv[1])
client = KazooClient(hosts=part["url"], timeout=20)
client.start(timeout=30)
recipes = {"lock": client.Lock, "write": client.WriteLock, "read": client.ReadLock}
if len(sys.argv) > 2:
    lock = recipes[sys.argv[2]](part["name"])
else:
    lock = client.Lock(part["name"], extra_lock_patterns=["-lock-"])


def acquire(wait):
    try:
        return lock.acquire(timeout=wait)
    except LockTimeout:
        return False


answer(part, acquire, lock.release)
