import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock, type Commit, type ReadOutcome } from 'signalbox/engine'
import { shiftWallClock } from '../../../conformance/src/wall-clock.js'
import type { BoxContext } from '../../src/engine/box-context.js'
import { NodePaths } from '../../src/engine/names.js'
import { ServerTime } from '../../src/engine/server-time.js'
import { Values } from '../../src/engine/values.js'
import { parseZooKeeperUrl } from '../../src/engine/zookeeper-url.js'
import { NoNodeError, type Stat, type ZooKeeper } from '../../src/index.js'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const place = parseZooKeeperUrl('zookeeper://server/place')
const paths = new NodePaths(place.root)

/** The nodes of a server with its own clock, as far as values need them. */
class Tree {
  now = Date.UTC(2001, 0)
  readonly #nodes = new Map<
    string,
    { data: Buffer; stat: Pick<Stat, 'ctime' | 'mtime' | 'mzxid' | 'version'> }
  >()
  #zxid = 0n

  /** Returns the server as a client sees it. */
  client(): ZooKeeper {
    const client = {
      sync: () => Promise.resolve(),
      exists: (path: string) => Promise.resolve(this.#nodes.get(path)?.stat),
      getData: (path: string) => {
        const node = this.#nodes.get(path)
        return node
          ? Promise.resolve(node)
          : Promise.reject(new NoNodeError('getData', path, -101, 'NO_NODE', ''))
      },
      delete: (path: string) => Promise.resolve(this.#nodes.delete(path)),
      transaction: () => this.#transaction(),
    }
    return client as unknown as ZooKeeper
  }

  has(key: string): boolean {
    return this.#nodes.has(paths.value(key))
  }

  #transaction() {
    const parts: (() => unknown)[] = []
    const add = (part: () => unknown) => {
      parts.push(part)
      return transaction
    }
    const transaction = {
      get size() {
        return parts.length
      },
      create: (path: string, data: string | Buffer) => add(() => ({ path, stat: this.#write(path, data) })),
      setData: (path: string, data: Buffer) => add(() => this.#write(path, data)),
      delete: (path: string) => add(() => this.#nodes.delete(path) && undefined),
      check: () => add(() => undefined),
      outcome: () => Promise.resolve({ done: true, answers: parts.map(part => part()) }),
    }
    return transaction
  }

  #write(path: string, data: string | Buffer) {
    const before = this.#nodes.get(path)?.stat
    const stat = {
      ctime: before?.ctime ?? this.now,
      mtime: this.now,
      mzxid: ++this.#zxid,
      version: before ? before.version + 1 : 0,
    }
    this.#nodes.set(path, { data: Buffer.from(data), stat })
    return stat
  }
}

let tree: Tree
beforeEach(() => {
  tree = new Tree()
})
afterEach(() => shiftWallClock(0))

function box() {
  const values = new Values({ place, paths, clock: systemClock, time: new ServerTime() } as BoxContext)
  const client = tree.client()
  const operation = (key: string, value: string | undefined, ids: readonly string[]): Commit => ({
    type: 'commit',
    guard: undefined,
    expect: [],
    writes: [{ key, value }],
    record: ids.map(id => ({ key, id })),
    retention: 60 * MINUTE,
    release: false,
  })
  const commit = (key: string, value: string | undefined, ...ids: string[]) =>
    values.commit(client, operation(key, value, ids), undefined)
  /** Replaces the value of an absent key, under a lock with this node. */
  const commitUnder = (path: string, key: string, value: string) =>
    values.commit(
      client,
      { ...operation(key, value, []), expect: [{ key, version: 0 }] },
      { paths: [path], release: true },
    )
  const read = (key: string, ...ids: string[]): Promise<ReadOutcome> =>
    values.read(client, { keys: [key], ids: ids.map(id => ({ key, id })) }, true)
  return { commit, commitUnder, read }
}

for (const [way, jump] of [
  ['ahead', 300 * DAY],
  ['back', -300 * DAY],
] as const)
  test(`a client whose clock is ${way} neither drops what is left of a value early nor keeps it`, async () => {
    await box().commit('key', '1')
    await box().commit('key', undefined)
    shiftWallClock(jump)
    const one = box()
    expect(await one.read('key')).toEqual({ values: [{ value: undefined, version: 0 }], seen: [] })
    tree.now += 10 * MINUTE - 1
    await box().commit('other', '1')
    await one.read('other')
    await one.read('key')
    expect(tree.has('key')).toBe(true)
    tree.now += 1
    await one.commit('other', '2')
    await one.read('key')
    expect(tree.has('key')).toBe(false)
  })

test('an id is kept for its retention by the server’s clock, from the change on', async () => {
  // The server time that this client knows is long past when it writes.
  const writer = box()
  await writer.commit('key', '1')
  tree.now += 50 * MINUTE
  expect(await writer.commit('key', '2', 'id')).toMatchObject({ state: 'committed' })
  // Writes the value again, together with the existing IDs.
  await box().commit('key', '3')
  await box().commit('key', undefined, 'second')

  shiftWallClock(300 * DAY)
  const one = box()
  tree.now += 60 * MINUTE - 1
  await one.commit('other', '1')
  expect((await one.read('key', 'id', 'second')).seen).toEqual([true, true])
  expect(await one.commit('key', '4', 'id')).toMatchObject({ state: 'repeated', id: 'id' })
  expect(await box().commit('key', '4', 'second')).toMatchObject({ state: 'repeated', id: 'second' })
  expect(tree.has('key')).toBe(true)
  tree.now += 1
  await one.commit('other', '2')
  expect((await one.read('key', 'id', 'second')).seen).toEqual([false, false])
  expect(tree.has('key')).toBe(false)
})

test('a commit whose lock is gone reports that, and not the conflict with a later change', async () => {
  await box().commit('key', 'later')
  await box().commit('lock', 'a node that exists')
  expect(await box().commitUnder(paths.value('lock'), 'key', 'mine')).toMatchObject({ state: 'conflict' })
  expect(await box().commitUnder(paths.value('gone'), 'key', 'mine')).toEqual({ state: 'lost' })
})
