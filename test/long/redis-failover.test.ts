import { expect, test } from 'vitest'
import { queued, soFar } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { codeOf } from '../support/redis/outcome.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { until } from '../support/servers/until.js'

interface Failover {
  readonly url: string
  /** Settles when the replica has all data. */
  readonly copied: () => Promise<void>
  /** Kills the master, and settles when another server has taken over. */
  readonly killMaster: () => Promise<void>
}

/** Kills the master while one box holds, one waits and one is in a transaction. The replica has all data. */
async function livesOn({ url, copied, killMaster }: Failover): Promise<void> {
  await using one = await open(url)
  await using other = await open(url)
  const held = await one.mutex('{t}key').acquire({ lease: '30s' })
  const waiting = other.mutex('{t}key').acquire()
  await queued(one, '{t}key', 1)
  await one.store('s').put('{t}sum', 1)
  let isInside = false
  let goOn = (): void => undefined
  const over = new Promise<void>(resolve => (goOn = resolve))
  const changing = other.store('s').transaction(
    ['{t}sum'],
    async transaction => {
      transaction.put('{t}sum', (transaction.get<number>('{t}sum') ?? 0) + 10)
      isInside = true
      await over
    },
    { lease: '30s' },
  )
  await until(() => isInside)
  await copied()

  await killMaster()
  for (const box of [one, other])
    await until(async () => (await codeOf(box.store('s').put('{t}other', 1))) === undefined)
  held.assertHeld()
  expect(await other.mutex('{t}key').tryAcquire()).toBeUndefined()
  expect(await soFar(waiting)).toBe('pending')
  goOn()
  expect((await changing).applied).toBe(true)
  expect((await one.store('s').get('{t}sum'))!.value).toBe(11)
  await held.release()
  const next = await waiting
  expect(next.token).toBeGreaterThan(held.token)
  await next.release()
}

test('a lock, a waiter and a transaction live through the death of a master behind a Sentinel', async () => {
  await using servers = await startRedisWithSentinel()
  await livesOn({
    url: servers.url,
    copied: () => servers.master.copied(),
    killMaster: async () => {
      const before = await servers.masterPort()
      await servers.master.kill()
      await until(async () => (await servers.masterPort()) !== before)
    },
  })
})

test('a lock, a waiter and a transaction live through the death of a master of a Cluster', async () => {
  const cluster = await startRedisCluster({ replicated: true })
  try {
    const master = await cluster.masterOf('{t}key')
    const replica = await cluster.replicaOf(master)
    await livesOn({
      url: cluster.url,
      copied: () => master.copied(),
      killMaster: async () => {
        await master.kill()
        await replica.command('CLUSTER', 'FAILOVER', 'TAKEOVER')
      },
    })
  } finally {
    await cluster.kill()
  }
})
