import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Barrier, DoubleBarrier, Group, NodeQueue, ZooKeeper } from 'signalbox-zookeeper'
import { root } from '../docs/pages.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import { RequestCutter, type CutMoment } from '../support/servers/zookeeper-cutter.js'

let server: ZooKeeperServer
let places = 0

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.kill())

/** Returns a path that no other test uses, two levels below any existing node. */
function place(): string {
  return `/folder-${++places}/place`
}

describe.concurrent('recipes whose connection is cut at each single request', () => {
  const steps: Record<string, (zk: ZooKeeper, path: string) => Promise<void>> = {
    async group(zk, path) {
      const group = new Group(zk, path)
      await using view = await group.watch()
      const membership = await group.join('own')
      await until(() => view.members.length === 1)
      expect(await group.members()).toEqual([membership.member])
      await membership.leave()
      await until(() => view.members.length === 0)
    },
    async barrier(zk, path) {
      const barrier = new Barrier(zk, path)
      await barrier.create()
      const waiting = barrier.wait()
      await barrier.remove()
      await waiting
    },
    async 'double barrier'(zk, path) {
      const rounds = await Promise.all([1, 2].map(() => new DoubleBarrier(zk, path, 2).enter()))
      expect(rounds[0]!.parties).toEqual(rounds[1]!.parties)
      await Promise.all(rounds.map(round => round.leave()))
    },
    async queue(zk, path) {
      const queue = new NodeQueue(zk, path)
      const id = await queue.put('job')
      const message = await queue.take()
      expect([message.id, message.data.toString()]).toEqual([id, 'job'])
      await message.done()
      const next = queue.take()
      await queue.put('another')
      await (await next).done()
    },
  }

  test.for(
    Object.entries(steps).flatMap(([name, step]) =>
      (['before', 'after'] as const).map((moment): [string, CutMoment, typeof step] => [name, moment, step]),
    ),
  )('%s, cut %s', async ([, moment, step]) => {
    await using cutter = await RequestCutter.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${cutter.port}`)
    const session = zk.sessionId
    let requests = 1
    for (; ; requests++) {
      const path = place()
      cutter.cutAt(requests, moment)
      await step(zk, path)
      const wasCut = !cutter.isPending
      cutter.cutAt(Infinity, moment)
      expect(await zk.getEphemerals()).toEqual([])
      expect((await zk.exists(path))?.numChildren ?? 0).toBe(0)
      if (!wasCut) break
    }
    expect(requests).toBeGreaterThan(5)
    expect(zk.sessionId).toBe(session)
    await until(() => zk.watched === 0)
  })
})

describe('the lock recipe of the examples, cut at each single request', () => {
  type Recipe = <T>(zk: ZooKeeper, folder: string, wait: number, task: () => Promise<T>) => Promise<T>

  const output = join(root, 'build-docs', `recipe-${process.pid}`)
  let withLock: Recipe

  beforeAll(async () => {
    const example = readFileSync(join(root, 'examples/zookeeper-recipe.ts'), 'utf8')
    const recipe = join(output, 'recipe.ts')
    mkdirSync(output, { recursive: true })
    writeFileSync(recipe, `${example.slice(0, example.indexOf('await using zk'))}export { withLock }\n`)
    ;({ withLock } = (await import(recipe)) as { withLock: Recipe })
  })
  afterAll(() => rmSync(output, { recursive: true, force: true }))

  test.for(['before', 'after'] as const)('cut %s', async moment => {
    await using cutter = await RequestCutter.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${cutter.port}`)
    await using other = await ZooKeeper.connect(server.address)
    let requests = 1
    for (; ; requests++) {
      const folder = `/recipe-${++places}`
      let inside = 0
      let most = 0
      const task = async (): Promise<void> => {
        most = Math.max(most, ++inside)
        await new Promise(resolve => setTimeout(resolve, 5))
        inside--
      }
      cutter.cutAt(requests, moment)
      await Promise.all([zk, other, zk].map(client => withLock(client, folder, 30_000, task)))
      const wasCut = !cutter.isPending
      cutter.cutAt(Infinity, moment)
      expect(most).toBe(1)
      expect((await other.getChildren(folder, { linearizable: true })).children).toEqual([])
      if (!wasCut) break
    }
    expect(requests).toBeGreaterThan(10)
  })

  test('a party that gives up leaves nothing behind, also while no server is connected', async () => {
    await using proxy = await Proxy.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`)
    const folder = `/recipe-${++places}`
    await withLock(zk, folder, 30_000, async () => {
      await expect(withLock(zk, folder, 50, () => Promise.resolve())).rejects.toThrow(/timed out/i)
      expect((await zk.getChildren(folder)).children).toHaveLength(1)
      proxy.target = undefined
      proxy.cut()
      await until(() => zk.state === 'suspended')
      const second = withLock(zk, folder, 50, () => Promise.resolve())
      const outcome = expect(second).rejects.toThrow(/timed out/i)
      await new Promise(resolve => setTimeout(resolve, 100))
      proxy.target = server.port
      await outcome
      expect((await zk.getChildren(folder)).children).toHaveLength(1)
    })
    expect((await zk.getChildren(folder)).children).toEqual([])
  })
})
