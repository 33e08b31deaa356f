import { expect, test } from 'vitest'
import type { ZooKeeper } from '../../src/index.js'
import { Changes } from '../../src/engine/changes.js'
import { QueueReads } from '../../src/engine/queue.js'

/** A client that counts requests, numbers the nodes of each parent, and answers in the next tick. */
class CountingClient {
  readonly sent: string[] = []
  readonly #nodes = new Map<string, string[]>()

  async create(prefix: string): Promise<{ path: string }> {
    this.sent.push(`create ${prefix}`)
    const parent = prefix.slice(0, prefix.lastIndexOf('/'))
    const names = this.#nodes.get(parent) ?? []
    this.#nodes.set(parent, names)
    const path = prefix + String(names.length).padStart(10, '0')
    names.push(path.slice(parent.length + 1))
    await new Promise(setImmediate)
    return { path }
  }

  transaction(): object {
    const prefixes: string[] = []
    return {
      create: (prefix: string) => void prefixes.push(prefix),
      commit: () => Promise.all(prefixes.map(prefix => this.create(prefix))),
    }
  }

  async childrenOf(parents: readonly string[]): Promise<(readonly string[] | undefined)[]> {
    this.sent.push(`read ${parents.join(' ')}`)
    const lists = parents.map(parent => this.#nodes.get(parent)?.slice())
    await new Promise(setImmediate)
    return lists
  }

  async getChildren(parent: string): Promise<{ children: readonly string[] }> {
    const [children] = await this.childrenOf([parent])
    return { children: children ?? [] }
  }

  get reads(): string[] {
    return this.sent.filter(text => text.startsWith('read'))
  }
}

const create = (key: string, index: number) => ({
  type: 'create' as const,
  prefix: `/locks/${key}/_c_${`${index}`.padStart(36, '0')}-lock-`,
  text: '',
})

test('a hundred requests for one key read its queue once, after the last of them', async () => {
  const client = new CountingClient()
  const changes = new Changes([])
  const applied = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      changes.apply(client as unknown as ZooKeeper, [create('hot', index)], ['/locks/hot'], index),
    ),
  )
  expect(client.reads).toEqual(['read /locks/hot'])
  expect(client.sent.at(-1)).toBe('read /locks/hot')
  const [first] = await applied[0]!.queues
  expect(first).toHaveLength(100)
  for (const { queues } of applied) expect((await queues)[0]).toBe(first)
})

test('what comes together keeps its order on each key, whether or not a parent may be missing', async () => {
  const client = new CountingClient()
  const changes = new Changes([])
  const keys = [['a'], ['a', 'new'], ['b'], ['a', 'b'], ['newer', 'b']]
  const created = keys.map(async (names, order) => {
    const isRisky = names.some(name => name.startsWith('new'))
    const parents = names.map(name => `/locks/${name}`)
    const creations = names.map(name => create(name, order))
    return (await changes.apply(client as unknown as ZooKeeper, creations, parents, order, isRisky)).created
  })
  const numbers = (await Promise.all(created))
    .flat()
    .map(({ path }) => path.replace(/_c_.*-lock-0+(?=.)/, ''))
  expect(numbers).toEqual(
    ['a/0', 'a/1', 'new/0', 'b/0', 'a/2', 'b/1', 'newer/0', 'b/2'].map(name => `/locks/${name}`),
  )
})

test('checks of one queue in one tick share a read; a check after it reads again', async () => {
  const client = new CountingClient()
  await client.create('/locks/hot/_c_-lock-')
  const reads = new QueueReads()
  const read = () => reads.read(client as unknown as ZooKeeper, '/locks/hot')
  const [one, other] = await Promise.all([read(), read()])
  expect(one).toBe(other)
  expect(client.reads).toHaveLength(1)
  await read()
  expect(client.reads).toHaveLength(2)
})
