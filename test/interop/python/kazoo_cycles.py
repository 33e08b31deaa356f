"""kazoo's Lock in the bench, with its own settings."""

from kazoo.client import KazooClient

from cycles import answer


def library(address):
    client = KazooClient(hosts=address)
    client.start()
    return lambda key: client.Lock(f"/{key}")


answer(library)
