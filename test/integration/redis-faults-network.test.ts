import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { soFar, until } from '../../packages/conformance/src/time.js'
import { codeOf } from '../support/redis/outcome.js'
import { RedisPlace } from '../support/redis/place.js'

describe.concurrent('a client of ioredis that keeps commands for later', () => {
  /** Opens a box over such a client behind a network, and another box with a direct connection. */
  async function start() {
    const here = await RedisPlace.start()
    const network = await here.network()
    const other = await here.box()
    const { host, port } = network
    const client = new Redis({ host, port, retryStrategy: () => 20, maxRetriesPerRequest: null })
    client.on('error', () => undefined)
    const box = await open({ redis: client })
    // From now on, the server knows the code.
    for (const each of [box, other]) await each.mutex('practice').run(() => undefined)
    return {
      ...{ here, network, other, client, box },
      async [Symbol.asyncDispose]() {
        client.disconnect()
        await box.close()
        await here[Symbol.asyncDispose]()
      },
    }
  }

  test('does not send an old commit while another box holds the lock', async () => {
    await using started = await start()
    const { here, network, other, client, box } = started
    const late = box.store('s').transaction(
      ['key'],
      async transaction => {
        transaction.put('key', 'late')
        network.target = undefined
        network.cut()
        await until('it is found out', () => client.status !== 'ready')
      },
      { lease: 1000 },
    )
    expect(await codeOf(late)).toBe('UNAVAILABLE')
    const store = other.store('s')
    await store.transaction(['key'], transaction => transaction.put('key', 'of the next'))
    network.target = here.server.port
    await until('it is back', () => client.status === 'ready')
    await box.store('s').put('afterwards', 1)
    expect(await store.get('key')).toMatchObject({ value: 'of the next' })
  })

  test('sends a commit again whose turn was handed on, and it is rejected', async () => {
    await using started = await start()
    const { here, network, other, box } = started
    const late = codeOf(
      box.store('s').transaction(
        ['key'],
        transaction => {
          transaction.put('key', 'late')
          network.requests = 'hold'
        },
        { lease: 1000 },
      ),
    )
    await until('the commit is under way', () => network.withheldRequests > 0)
    network.target = undefined
    network.cut()
    network.requests = 'pass'
    const store = other.store('s')
    await store.transaction(['key'], transaction => transaction.put('key', 'of the next'))
    expect(await soFar(late)).toBe('pending')
    await here.server.command('CONFIG', 'RESETSTAT')
    network.target = here.server.port
    expect(await late).toBe('INDETERMINATE')
    const { fcall } = await here.server.calls()
    expect(fcall).toBeGreaterThan(0)
    expect(await store.get('key')).toMatchObject({ value: 'of the next' })
  })
})
