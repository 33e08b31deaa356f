import { afterAll, describe, expect, test } from 'vitest'
import {
  BadVersionError,
  ConnectionLossError,
  createSettled,
  deleteSettled,
  setDataSettled,
  settled,
  SessionExpiredError,
  type Stat,
  ZooKeeper,
} from 'signalbox-zookeeper'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { RequestCutter, type CutMoment } from '../support/servers/zookeeper-cutter.js'

let places = 0

const server = await startZooKeeper()

afterAll(() => server.kill())

/** Returns a path that no other test uses, two levels below any existing node. */
const place = (): string => `/folder-${++places}/place`

describe.concurrent('changes whose connection is cut at each request', () => {
  const steps: Record<string, (zk: ZooKeeper, path: string) => Promise<void>> = {
    async 'a creation'(zk, path) {
      const made = [
        await createSettled(zk, `${path}/node-`, 'data', { ephemeral: true, sequential: true }),
        await createSettled(zk, `${path}/node`, 'data'),
      ]
      const { children } = await zk.getChildren(path)
      expect(children.map(child => `${path}/${child}`).sort()).toEqual([...made].sort())
      expect(made[0]).toMatch(/_c_[0-9a-f-]{36}-node-\d{10}$/)
      for (const each of made) expect((await zk.getData(each)).data.toString()).toBe('data')
    },
    async 'a write'(zk, path) {
      const node = await createSettled(zk, path, 'data')
      let { stat } = await zk.getData(node)
      for (const count of [1, 2, 3]) {
        stat = await setDataSettled(zk, node, `${count}`, stat)
        expect(stat.version).toBe(count)
      }
      expect((await zk.getData(node)).data.toString()).toBe('3')
    },
    async 'a deletion'(zk, path) {
      const node = await createSettled(zk, path)
      await deleteSettled(zk, node, (await zk.exists(node))!)
      expect(await zk.exists(node)).toBeUndefined()
    },
    async 'a transaction'(zk, path) {
      const node = await createSettled(zk, path)
      const { stat } = await zk.getData(node)
      const both = zk.transaction().setData(node, path, stat.version).create(`${node}/child`)
      const versions = await settled(
        async () => {
          const [changed] = await both.commit()
          return (changed as { version: number }).version
        },
        async () => {
          const { data, stat } = await zk.getData(node, { linearizable: true })
          return data.toString() === path ? { answer: stat.version } : undefined
        },
      )
      expect(versions).toBe(stat.version + 1)
      expect((await zk.getChildren(node)).children).toEqual(['child'])
    },
  }

  test.for(
    Object.entries(steps).flatMap(([name, step]) =>
      (['before', 'after'] as const).map((moment): [string, CutMoment, typeof step] => [name, moment, step]),
    ),
  )('%s, cut %s', async ([, moment, step]) => {
    await using cutter = await RequestCutter.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${cutter.port}`)
    let requests = 1
    for (; ; requests++) {
      cutter.cutAt(requests, moment)
      await step(zk, place())
      const wasCut = !cutter.isPending
      cutter.cutAt(Infinity, moment)
      if (!wasCut) break
    }
    expect(requests).toBeGreaterThan(4)
  })
})

describe.concurrent('a lost change, and changes by other clients before the client could look', () => {
  /** Returns the outcome, and the final data of the node; undefined if it is deleted. */
  async function outcome<T>(
    lost: 'requests' | 'replies',
    change: (zk: ZooKeeper, path: string, stat: Stat) => Promise<T>,
    others: (zk: ZooKeeper, path: string) => Promise<unknown>,
  ): Promise<[PromiseSettledResult<T>, string | undefined]> {
    await using proxy = await Proxy.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sessionTimeout: '30s' })
    await using direct = await ZooKeeper.connect(server.address)
    const wanted = place()
    // Creates the parent as a normal node, because the server would delete a container with its only child.
    await direct.create(wanted.slice(0, wanted.lastIndexOf('/')))
    const path = await createSettled(direct, wanted, 'old')
    const stat = (await direct.exists(path))!
    await zk.sync()
    proxy[lost] = 'lose'
    const settling = Promise.allSettled([change(zk, path, stat)])
    await until(() => (lost === 'requests' ? proxy.withheldRequests : proxy.withheldReplies) > 0)
    await others(direct, path)
    proxy[lost] = 'pass'
    proxy.cut()
    const [settledAs] = await settling
    const isThere = await direct.exists(path)
    return [settledAs, isThere && (await direct.getData(path)).data.toString()]
  }
  const write = (zk: ZooKeeper, path: string, stat: Stat) => setDataSettled(zk, path, 'new', stat)
  const remove = (zk: ZooKeeper, path: string, stat: Stat) => deleteSettled(zk, path, stat)
  const overwrite = (zk: ZooKeeper, path: string) => zk.setData(path, 'of another')
  const renew = async (zk: ZooKeeper, path: string) => {
    if (await zk.exists(path)) await zk.delete(path)
    await zk.create(path, 'of another')
  }
  const rejected = (error: unknown) => ({ status: 'rejected', reason: expect.any(error) as unknown })

  test('a write that did not arrive is rejected if another client wrote', async () => {
    expect(await outcome('requests', write, overwrite)).toMatchObject([
      rejected(BadVersionError),
      'of another',
    ])
  })

  test('a write that another client has overwritten may have been applied', async () => {
    expect(await outcome('replies', write, overwrite)).toMatchObject([
      rejected(ConnectionLossError),
      'of another',
    ])
  })

  test('a write whose node was recreated may have been applied', async () => {
    for (const lost of ['requests', 'replies'] as const)
      expect(await outcome(lost, write, renew)).toMatchObject([rejected(ConnectionLossError), 'of another'])
  })

  test('a deletion does not affect a node that was recreated or written to', async () => {
    for (const lost of ['requests', 'replies'] as const)
      expect(await outcome(lost, remove, renew)).toMatchObject([{ status: 'fulfilled' }, 'of another'])
    expect(await outcome('requests', remove, overwrite)).toMatchObject([
      rejected(BadVersionError),
      'of another',
    ])
  })

  test('if the session ends before the client can look, the operation is indeterminate', async () => {
    await using proxy = await Proxy.start(server.port)
    await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sessionTimeout: 2000 })
    const path = await createSettled(zk, place())
    const stat = (await zk.exists(path))!
    proxy.replies = 'hold'
    const changes = await Promise.allSettled([
      createSettled(zk, place()),
      createSettled(zk, place(), '', { ephemeral: true }),
      write(zk, path, stat),
      remove(zk, path, stat),
    ])
    expect(changes).toMatchObject(
      [ConnectionLossError, SessionExpiredError, ConnectionLossError, ConnectionLossError].map(rejected),
    )
  })
})
