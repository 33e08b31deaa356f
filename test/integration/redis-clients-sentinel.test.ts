import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ClientPackage } from '../../src/engines/redis/clients/connection.js'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { linkTo } from '../../src/engines/redis/links.js'
import { parseRedisUrl } from '../../src/engines/redis/redis-url.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { Heard } from '../support/redis/heard.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { startRedisWithSentinel, type RedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { until } from '../support/servers/until.js'

const PASSWORD = 'sesame'

function linkOf(url: string, connectWith: ClientPackage, heard = new Heard()): RedisLink {
  return linkTo(parseRedisUrl(url), connectWith)(heard)
}

describe.each(clientPackages)('behind a Sentinel with $name', ({ connectWith }) => {
  let servers: RedisWithSentinel
  let url: string
  beforeAll(async () => {
    servers = await startRedisWithSentinel({ password: PASSWORD })
    url = `redis+sentinel://:${PASSWORD}@127.0.0.1:${servers.sentinel.port}/${servers.name}`
  })
  afterAll(() => servers.kill())

  test('the master is found although other Sentinels are gone', async () => {
    const gone = await freePort()
    const several = url.replace('127.0.0.1', `127.0.0.1:${gone},127.0.0.1`)
    const link = linkOf(`${several}?db=2`, connectWith)
    await link.connect()
    expect(await link.command('', ['SET', 'k', 'v'])).toBe('OK')
    expect(String(await link.command('', ['CLIENT', 'INFO']))).toContain('db=2')
    await link.close()
  })

  test('no Sentinel, an unknown master and a wrong password are different errors', async () => {
    const refusal = async (address: string) => {
      const link = linkOf(address, connectWith)
      const failure: unknown = await link.connect().catch((error: unknown) => error)
      await link.close()
      return failure
    }
    const unavailable = (reason: string) => ({
      code: 'UNAVAILABLE',
      message: expect.stringContaining(reason),
    })
    const nowhere = `redis+sentinel://127.0.0.1:${await freePort()}/${servers.name}`
    expect(await refusal(nowhere)).toMatchObject(unavailable('ECONNREFUSED'))
    expect(await refusal(url.replace(/\/\w+$/, '/other'))).toMatchObject(
      unavailable('no Sentinel knows the master other'),
    )
    expect(await refusal(url.replace(PASSWORD, 'wrong'))).toMatchObject(unavailable('WRONGPASS'))
  })

  test('after a failover commands and messages use the new master', async () => {
    const heard = new Heard()
    const link = linkOf(url, connectWith, heard)
    await link.connect()
    await link.subscribe('news')
    const { epoch } = link
    await servers.failover()
    const connection = await servers.replica.connection()
    await connection.command('AUTH', PASSWORD)
    // The old master accepts writes until the Sentinel has made it a replica, and these are lost.
    await until(async () => {
      await link.command('', ['SET', 'k', 'new']).catch(() => undefined)
      return (await connection.command('GET', 'k')) === 'new' && link.epoch > epoch
    })
    await until(() => heard.resubscriptions > 0)
    await until(async () => (await connection.command('PUBLISH', 'news', 'from the new one')) === 1)
    await until(() => heard.messages.includes('news: from the new one'))
    connection.close()
    await link.close()
  })
})

test('a Sentinel that requires a password gets the one of the URL', async () => {
  await using servers = await startRedisWithSentinel({ password: PASSWORD })
  await servers.sentinel.command('ACL', 'SETUSER', 'default', `>${PASSWORD}`)
  await servers.sentinel.command('ACL', 'SETUSER', 'default', 'resetpass', `>${PASSWORD}`)
  for (const { connectWith } of clientPackages) {
    const link = linkOf(
      `redis+sentinel://:${PASSWORD}@127.0.0.1:${servers.sentinel.port}/${servers.name}`,
      connectWith,
    )
    await link.connect()
    expect(await link.command('', ['PING'])).toBe('PONG')
    await link.close()
    const without = linkOf(`redis+sentinel://127.0.0.1:${servers.sentinel.port}/${servers.name}`, connectWith)
    await expect(without.connect()).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('NOAUTH'),
    })
    await without.close()
  }
})
