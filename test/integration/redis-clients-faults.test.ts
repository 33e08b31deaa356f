import { describe, expect, test } from 'vitest'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { linkWays, PATIENCE } from '../support/redis/link-ways.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { startRedis } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

const UNAVAILABLE = { code: 'UNAVAILABLE' }
const INDETERMINATE = { code: 'INDETERMINATE' }

/** Waits until the server replies to commands again. */
async function recovered(link: RedisLink): Promise<void> {
  await until(async () => (await link.command('', ['PING']).catch(() => undefined)) === 'PONG')
}

describe.each(linkWays)('faults with $name', ({ open }) => {
  test('a server that is gone: new calls fail, calls under way are unclear, until it is back', async () => {
    await using server = await startRedis()
    await using opened = await open(server)
    const { link } = opened
    const { epoch } = link
    // The other commands wait behind the first one.
    const blocked = [['BLPOP', 'nothing', '2'], ['INCR', 'k'], ['PING']].map(args => link.command('', args))
    const outcomes = Promise.allSettled(blocked)
    await until(async () => /blocked_clients:1/.test(String(await server.command('INFO', 'clients'))))
    await server.kill()
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: INDETERMINATE })
    const refused = performance.now()
    await expect(link.command('', ['PING'])).rejects.toMatchObject(UNAVAILABLE)
    // The call fails before the timeout.
    expect(performance.now() - refused).toBeLessThan(PATIENCE.answer)
    await server.start()
    await recovered(link)
    expect(link.epoch).toBeGreaterThan(epoch)
  })

  test('a frozen server: every call settles, and calls succeed when it continues', async () => {
    await using server = await startRedis()
    await using opened = await open(server)
    const { heard, link } = opened
    await link.subscribe('news')
    server.pause()
    const sent = [link.command('', ['INCR', 'k']), link.command('', ['INCR', 'k'])]
    for (const outcome of await Promise.allSettled(sent))
      expect(outcome).toMatchObject({ status: 'rejected', reason: INDETERMINATE })
    await expect(link.command('', ['INCR', 'k'])).rejects.toMatchObject(UNAVAILABLE)
    server.resume()
    await recovered(link)
    // The silent connection for messages was replaced, or still works.
    await until(async () => (await server.command('PUBLISH', 'news', 'x')) === 1)
    await until(() => heard.messages.length > 0)
  })

  test('closing does not wait for a frozen server', async () => {
    await using server = await startRedis()
    await using opened = await open(server)
    const { link } = opened
    await link.subscribe('news')
    server.pause()
    const sent = link.command('', ['INCR', 'k'])
    sent.catch(() => undefined)
    const began = performance.now()
    await link.close()
    await expect(sent).rejects.toMatchObject(INDETERMINATE)
    expect(performance.now() - began).toBeLessThan(PATIENCE.answer)
  })

  test('a connection for commands that has gone silent is replaced', async () => {
    await using server = await startRedis()
    await using network = await Proxy.start(server.port)
    await using opened = await open(network)
    const { link } = opened
    network.replies = 'lose'
    await expect(link.command('', ['PING'])).rejects.toMatchObject(INDETERMINATE)
    network.replies = 'pass'
    // The old connection gets no more replies.
    await recovered(link)
  })

  test('messages after the connection for them was killed', async () => {
    await using server = await startRedis()
    await using opened = await open(server)
    const { heard, link } = opened
    await link.subscribe('a')
    await link.subscribe('b')
    for (let round = 1; round <= 5; round++) {
      const told = heard.resubscriptions
      await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await until(() => heard.resubscriptions > told)
      heard.messages.length = 0
      // Both channels are subscribed again before the notification, so no later message is missed.
      expect(await server.command('PUBLISH', 'a', 'x')).toBe(1)
      expect(await server.command('PUBLISH', 'b', 'y')).toBe(1)
      await until(() => heard.messages.length === 2)
    }
    expect(await link.command('', ['PING'])).toBe('PONG')
  })

  test('a connection for messages that has gone silent is noticed and replaced', async () => {
    await using server = await startRedis()
    await using network = await Proxy.start(server.port)
    await using opened = await open(network)
    const { heard, link } = opened
    await link.subscribe('news')
    network.replies = 'lose'
    await server.command('PUBLISH', 'news', 'lost')
    await until(() => network.withheldReplies > 0)
    network.replies = 'pass'
    // The lost data breaks those connections: they get no more replies.
    await until(() => heard.resubscriptions > 0)
    await server.command('PUBLISH', 'news', 'found')
    await until(() => heard.messages.includes('news: found'))
  })

  test('nothing is sent twice', async () => {
    await using server = await startRedis()
    await using network = await Proxy.start(server.port)
    await using opened = await open(network)
    const { link } = opened
    let answered = 0
    let unclear = 0
    for (let round = 0; round < 20; round++) {
      const sent = Array.from({ length: 20 }, () => link.command('', ['INCR', 'count']))
      if (round % 2 === 0) network.cut()
      for (const outcome of await Promise.allSettled(sent)) {
        if (outcome.status === 'fulfilled') answered++
        else if (outcome.reason.code === 'INDETERMINATE') unclear++
      }
      await recovered(link)
    }
    const count = Number(await link.command('', ['GET', 'count']))
    expect(count).toBeGreaterThanOrEqual(answered)
    expect(count).toBeLessThanOrEqual(answered + unclear)
    expect(unclear).toBeGreaterThan(0)
  })
})
