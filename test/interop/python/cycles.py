"""What bench/lockers/foreign.ts says that a program of the bench is told and answers: threads that lock and unlock, over
and over."""

import json
import os
import struct
import sys
import threading
import time

FIELD = struct.Struct("=q")


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def fail(error):
    say(f"failed {error!r}\n")
    os._exit(1)


def now():
    """The monotonic clock of the machine: milliseconds."""
    return time.monotonic_ns() / 1e6


class Guard:
    """A file that only the holder of a lock may touch."""

    def __init__(self, path, holder):
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.holder = holder

    def enter(self):
        before = self.exchange(self.holder)
        if before != 0:
            return f"process {before} was inside when process {self.holder} came in"

    def leave(self):
        last = self.exchange(0)
        if last != self.holder:
            return f"process {last} came in while process {self.holder} was inside"

    def exchange(self, value):
        field = os.pread(self.file, FIELD.size, 0)
        os.pwrite(self.file, FIELD.pack(value), 0)
        return FIELD.unpack(field)[0] if field else 0


class Task:
    """What one thread did."""

    def __init__(self, lock, guard):
        self.lock = lock
        self.guard = guard
        self.waits = []
        self.requested = []
        self.operations = 0
        self.broken = None

    def work(self, start, end):
        try:
            while now() < start:
                time.sleep(0.001)
            while (since := now()) < end:
                self.cycle(since)
                if now() <= end:
                    self.operations += 1
        except BaseException as error:
            # Others may wait in vain for what this one holds.
            fail(error)

    def cycle(self, since):
        self.lock.acquire()
        self.requested.append(since)
        self.waits.append(now() - since)
        if self.guard:
            self.broken = self.guard.enter() or self.broken
            self.broken = self.guard.leave() or self.broken
        self.lock.release()


def line(what, values):
    return " ".join([what, *map(str, values)]) + "\n"


def perform(locks, guard, start, end):
    tasks = [Task(lock, guard) for lock in locks]
    threads = [threading.Thread(target=task.work, args=(start, end), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answer = []
    for task in tasks:
        if task.broken:
            answer.append(f"broken {task.broken}\n")
        answer += [line("waits", task.waits), line("requested", task.requested)]
    answer.append(f"performed {sum(task.operations for task in tasks)}\n")
    say("".join(answer))


def carry_out(locks, guard, words):
    try:
        perform(locks, guard, float(words[1]), float(words[2]))
    except BaseException as error:
        fail(error)


def answer(library):
    """`library` is told the address and gives what gives the lock of a key, one for each thread."""
    try:
        part = json.loads(sys.argv[1])
        lock_of = library(part["address"])
        keys = part["keys"]
        locks = [lock_of(keys[task % len(keys)]) for task in range(part["tasks"])]
        guard = Guard(part["guarded"], part["holder"]) if part["guarded"] else None
        say("ready\n")
        for text in sys.stdin:
            threading.Thread(target=carry_out, args=(locks, guard, text.split()), daemon=True).start()
        os._exit(0)
    except BaseException as error:
        fail(error)
