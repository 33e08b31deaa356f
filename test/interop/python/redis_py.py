"""redis-py's Lock."""

import json
import sys

import redis
from redis.exceptions import LockError

from rounds import answer

part = json.loads(sys.argv[1])
client = redis.Redis.from_url(part["url"])
lock = client.lock(part["name"], timeout=part["lease"] / 1000, sleep=part["retry"] / 1000, thread_local=False)


def release():
    try:
        lock.release()
        return True
    except LockError:
        return False


answer(part, lambda wait: lock.acquire(blocking_timeout=wait), release)
