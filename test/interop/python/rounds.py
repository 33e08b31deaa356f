"""What rounds.ts says that such a program is told and answers."""

import random
import sys
import threading
import time

PATIENCE = 5

going = threading.Event()


def say(line):
    print(line, flush=True)


def answer(part, acquire, release):
    """`acquire` is given seconds and says whether it got the lock; `release` says whether it had it."""

    def one_round():
        if part["excludes"] and not acquire(PATIENCE):
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
                say("held" if acquire(int(amount[0]) / 1000) else "busy")
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
