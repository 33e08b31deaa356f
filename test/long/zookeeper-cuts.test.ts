import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Barrier, DoubleBarrier, Group, NodeQueue, ZooKeeper } from '../../src/zookeeper/index.js'
import { until } from '../servers/until.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { RequestCutter, type CutMoment } from '../servers/zookeeper-cutter.js'

let server: ZooKeeperServer
let places = 0

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.kill())

/** A path that nobody else uses, two levels below anything that is there. */
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
