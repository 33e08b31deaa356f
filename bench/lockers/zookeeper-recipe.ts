import { toldAddress } from './address-file.js'
import type { LockLibrary } from './locker.js'
import { nativeZooKeeper, nodeZooKeeperClient, type ZooKeeperPackage } from './zookeeper-clients.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/** The lock recipe of ZooKeeper's documentation, written with a client from npm. */
function recipe({ name, connect }: ZooKeeperPackage): LockLibrary {
  return {
    name: `the recipe, by ${name}`,
    support: zooKeeperSupport,
    async open(folder, keys) {
      const client = await connect(await toldAddress(folder))
      for (const key of keys) await client.make(`/${key}`)
      return {
        async lock(key) {
          const parent = `/${key}`
          const own = await client.makeNumbered(`${parent}/lock-`, undefined, true)
          for (;;) {
            const names = await client.children(parent)
            const before = names.sort()[names.indexOf(own.slice(parent.length + 1)) - 1]
            if (before === undefined) break
            await client.gone(`${parent}/${before}`)
          }
          return {
            async unlock() {
              await client.remove(own)
            },
          }
        },
        close: () => client.close(),
      }
    },
  }
}

export const recipes = [nodeZooKeeperClient, nativeZooKeeper].map(recipe)
