"""redis-py's Lock, as rounds.ts says what such a program is told and what it answers."""

import json
import random
import sys
import threading
import time

import redis
from redis.exceptions import LockError

PATIENCE = 5

part = json.loads(sys.argv[1])
client = redis.Redis.from_url(part["url"])
lock = client.lock(part["name"], timeout=part["lease"] / 1000, sleep=part["retry"] / 1000, thread_local=False)
going = threading.Event()


def say(line):
    print(line, flush=True)


def release():
    try:
        lock.release()
        return True
    except LockError:
        return False


def one_round():
    if part["excludes"] and not lock.acquire(blocking_timeout=PATIENCE):
        return
    begin = time.monotonic_ns()
    time.sleep(part["hold"] / 1000)
    end = time.monotonic_ns()
    if part["excludes"]:
        release()
    say(f"inside {begin} {end}")
    time.sleep(random.uniform(0, part["pause"] / 1000))


def rounds():
    while going.is_set():
        one_round()
    say("stopped")


def carry_out(line):
    command, *amount = line.split()
    try:
        if command == "acquire":
            say("held" if lock.acquire(blocking_timeout=int(amount[0]) / 1000) else "busy")
        elif command == "release":
            say("released" if release() else "lost")
        elif command == "rounds":
            rounds()
    except Exception as error:
        say(f"failed {error!r}")


say("ready")
for line in sys.stdin:
    if line.strip() == "stop":
        going.clear()
        continue
    if line.strip() == "rounds":
        going.set()
    threading.Thread(target=carry_out, args=(line,), daemon=True).start()
