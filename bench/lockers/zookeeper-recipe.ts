import { createClient, CreateMode, type Client, type Exception, type Stat } from 'node-zookeeper-client'
import { toldAddress } from './address-file.js'
import type { LockLibrary } from './locker.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/** The lock recipe of ZooKeeper's documentation, as one writes it with the client from npm. */
export const recipe: LockLibrary = {
  name: 'the recipe, by node-zookeeper-client',
  support: zooKeeperSupport,
  async open(folder, keys) {
    const client = createClient(await toldAddress(folder))
    const connected = new Promise<void>(resolve => client.once('connected', resolve))
    client.connect()
    await connected
    for (const key of keys) await answer<string>(done => client.mkdirp(`/${key}`, done))
    return {
      async lock(key) {
        const parent = `/${key}`
        const mode = CreateMode.EPHEMERAL_SEQUENTIAL
        const own = await answer<string>(done => client.create(`${parent}/lock-`, mode, done))
        for (;;) {
          const names = await answer<string[]>(done => client.getChildren(parent, done))
          const before = names.sort()[names.indexOf(own.slice(parent.length + 1)) - 1]
          if (before === undefined) break
          await gone(client, `${parent}/${before}`)
        }
        return {
          unlock: () => answer<undefined>(done => client.remove(own, error => done(error, undefined))),
        }
      },
      async close() {
        client.close()
      },
    }
  },
}

/** What a call of the client answers. */
function answer<T>(call: (done: (error: Error | Exception | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => {
      if (error) reject(new Error(`ZooKeeper refused: ${String(error)}`, { cause: error }))
      else resolve(value)
    })
  })
}

/** Waits until a node is gone, or has changed in some way. */
function gone(client: Client, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    answer<Stat | null>(done => client.exists(path, () => resolve(), done)).then(stat => {
      if (!stat) resolve()
    }, reject)
  })
}
