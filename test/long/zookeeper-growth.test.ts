import { expect, test, vi } from 'vitest'
import { open, type Box } from 'signalbox'
import { ZooKeeper } from 'signalbox-zookeeper'
import { memoryInUse } from '../support/heap.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

const OPERATIONS = 1_000_000
const OUTSTANDING = 1000
const WATCHES = 100_000
const MB = 1024 * 1024
/** Maximum time until thousands of requests have arrived, and the interval of checks, in milliseconds. */
const PATIENCE = { timeout: 120_000, interval: 100 }

test('memory is flat over a million operations', async () => {
  await using server = await startZooKeeper()
  await using zk = await ZooKeeper.connect(server.address, { sessionTimeout: '30s' })
  await zk.create('/a', 'x'.repeat(100))
  let done = 0
  /** Runs concurrent tasks. Each of them makes one request after another, and every tenth request is a change. */
  const work = (count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: OUTSTANDING }, async () => {
        while (done < count) {
          const turn = done++
          if (turn % 20 === 0) await zk.create(`/n${turn}`, '', { ephemeral: true })
          else if (turn % 20 === 10) await zk.delete(`/n${turn - 10}`).catch(() => undefined)
          else if (turn % 7 === 0) await zk.exists('/none')
          else await zk.getData('/a')
        }
      }),
    )
  await work(OPERATIONS / 20)
  const before = await memoryInUse()
  await work(OPERATIONS)
  const after = await memoryInUse()
  expect(done).toBe(OPERATIONS)
  expect(after.heapUsed - before.heapUsed).toBeLessThan(4 * MB)
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(4 * MB)
})

test('100,000 watches take little memory, outlive a lost connection, and leave nothing', async () => {
  await using server = await startZooKeeper()
  await using proxy = await Proxy.start(server.port)
  const before = await memoryInUse()
  {
    await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sessionTimeout: '30s' })
    const heard: string[] = []
    const watch = ({ type, path }: { type: string; path: string }): void => void heard.push(`${type} ${path}`)
    for (let first = 0; first < WATCHES; first += OUTSTANDING)
      await Promise.all(
        Array.from({ length: OUTSTANDING }, (_, index) => zk.exists(`/watched-${first + index}`, { watch })),
      )
    expect(zk.watched).toBe(WATCHES)
    const watching = await memoryInUse()
    expect((watching.heapUsed - before.heapUsed) / WATCHES).toBeLessThan(800)
    const states: string[] = []
    zk.onState(state => states.push(state))
    proxy.cut()
    await until(() => states.includes('connected'))
    const some = [0, 1, WATCHES / 2, WATCHES - 1].map(index => `/watched-${index}`)
    await Promise.all(some.map(path => zk.create(path)))
    await until(() => heard.length === some.length)
    expect(heard.sort()).toEqual(some.map(path => `created ${path}`).sort())
    expect(zk.watched).toBe(WATCHES - some.length)
  }
  const after = await memoryInUse()
  expect(after.heapUsed - before.heapUsed).toBeLessThan(6 * MB)
})

test('5,000 waiters of 20 boxes have their turns in order, and 2,500 that give up at once delay nobody', async () => {
  await using server = await startZooKeeper()
  const boxes: Box[] = []
  for (let index = 0; index < 20; index++) boxes.push(await open(`zookeeper://${server.address}/app`))
  const first = await boxes[0]!.mutex('hot').acquire()
  const tokens: bigint[] = []
  const served: number[] = []
  const givingUp = new AbortController()
  const gone: unknown[] = []
  const waiting = Array.from({ length: 5000 }, async (_, index) => {
    const options = {
      wait: '10m',
      ownRequest: true,
      signal: index % 2 ? givingUp.signal : undefined,
    } as const
    try {
      const grant = await boxes[index % boxes.length]!.mutex('hot').acquire(options)
      tokens.push(grant.token)
      served.push(index)
      await grant.release()
    } catch (error) {
      gone.push(error)
    }
  })
  await using zk = await ZooKeeper.connect(server.address)
  const requests = async () => (await zk.getChildren('/app/locks/hot')).children.length
  await vi.waitUntil(async () => (await requests()) === 1 + waiting.length, PATIENCE)
  givingUp.abort()
  await vi.waitUntil(async () => (await requests()) === 1 + waiting.length / 2, PATIENCE)
  const begun = performance.now()
  await first.release()
  await Promise.all(waiting)
  expect(gone).toHaveLength(2500)
  expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
  for (let box = 0; box < boxes.length; box++) {
    const own = served.filter(index => index % boxes.length === box)
    expect(own).toEqual(own.toSorted((a, b) => a - b))
  }
  // Each turn costs two reads of 2,500 names and two transactions.
  expect((performance.now() - begun) / served.length).toBeLessThan(40)
  await Promise.all(boxes.map(box => box.close()))
})
