import { createClient, CreateMode, type Exception, type Stat } from 'node-zookeeper-client'
import { createRequire } from 'node:module'
import { packageFile } from '../package.js'

/** The functions of a client that the recipe and the bench of creates need. */
export interface ZooKeeperClient {
  /** Creates a persistent node unless it exists. */
  make(path: string): Promise<unknown>
  /** Creates a node with ten digits at the end of its path. Returns that path. */
  makeNumbered(path: string, data: Buffer | undefined, isEphemeral: boolean): Promise<string>
  children(path: string): Promise<string[]>
  /** Waits until a node is deleted, or changes in another way. */
  gone(path: string): Promise<void>
  remove(path: string): Promise<unknown>
  close(): Promise<void>
}

/** A client from npm. */
export interface ZooKeeperPackage {
  readonly name: string
  readonly connect: (address: string) => Promise<ZooKeeperClient>
}

export const nodeZooKeeperClient: ZooKeeperPackage = {
  name: 'node-zookeeper-client',
  async connect(address) {
    const client = createClient(address)
    const connected = new Promise<void>(resolve => client.once('connected', resolve))
    client.connect()
    await connected
    return {
      make: path => answer(done => client.mkdirp(path, done)),
      makeNumbered(path, data, isEphemeral) {
        const mode = isEphemeral ? CreateMode.EPHEMERAL_SEQUENTIAL : CreateMode.PERSISTENT_SEQUENTIAL
        return answer(done =>
          data ? client.create(path, data, mode, done) : client.create(path, mode, done),
        )
      },
      children: path => answer(done => client.getChildren(path, done)),
      gone: path =>
        new Promise((resolve, reject) => {
          answer<Stat | null>(done => client.exists(path, () => resolve(), done)).then(stat => {
            if (!stat) resolve()
          }, reject)
        }),
      remove: path => answer(done => client.remove(path, error => done(error, undefined))),
      async close() {
        client.close()
      },
    }
  },
}

/** Converts a callback of the client to a promise. */
function answer<T>(call: (done: (error: Error | Exception | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => {
      if (error) reject(new Error(`ZooKeeper refused: ${String(error)}`, { cause: error }))
      else resolve(value)
    })
  })
}

/** The parts of the package that are used here. The package is in the folder in which it was compiled. */
interface Native {
  new (config: { readonly connect: string; readonly timeout: number; readonly debug_level: number }): {
    connect(options: object, done: (error: Error | null) => void): void
    create(path: string, data: Buffer | string, flags: number): Promise<string>
    get_children(path: string, watch: boolean): Promise<string[]>
    w_exists(path: string, changed: () => void): Promise<unknown>
    delete_(path: string, version: number): Promise<unknown>
    mkdirp(path: string, done: (error: Error | null) => void): void
    close(): void
  }
  readonly constants: Readonly<Record<'ZOO_EPHEMERAL' | 'ZOO_SEQUENCE' | 'ZOO_LOG_LEVEL_ERROR', number>>
}

const SESSION = 30_000
const ANY_VERSION = -1
const NO_NODE = '-101 '

/** The C client of the ZooKeeper project, in a native addon. */
export const nativeZooKeeper: ZooKeeperPackage = {
  name: 'zookeeper',
  async connect(address) {
    const ZooKeeper = createRequire(packageFile('.interop/native/package.json'))('zookeeper') as Native
    const { ZOO_EPHEMERAL, ZOO_SEQUENCE, ZOO_LOG_LEVEL_ERROR } = ZooKeeper.constants
    const client = new ZooKeeper({ connect: address, timeout: SESSION, debug_level: ZOO_LOG_LEVEL_ERROR })
    await answer(done => client.connect({}, error => done(error, undefined)))
    return {
      make: path => answer(done => client.mkdirp(path, error => done(error, undefined))),
      makeNumbered: (path, data, isEphemeral) =>
        client.create(path, data ?? '', isEphemeral ? ZOO_EPHEMERAL | ZOO_SEQUENCE : ZOO_SEQUENCE),
      children: path => client.get_children(path, false),
      gone: path =>
        new Promise((resolve, reject) => {
          client
            .w_exists(path, () => resolve())
            .catch((error: unknown) => {
              if (error instanceof Error && error.message.startsWith(NO_NODE)) resolve()
              else reject(error)
            })
        }),
      remove: path => client.delete_(path, ANY_VERSION),
      async close() {
        client.close()
      },
    }
  },
}
