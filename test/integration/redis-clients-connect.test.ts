import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ClientPackage } from '../../src/engines/redis/clients/connection.js'
import { detectClient } from '../../src/engines/redis/clients/detect-client.js'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { linkOver, linkTo } from '../../src/engines/redis/links.js'
import { parseRedisUrl } from '../../src/engines/redis/redis-url.js'
import { makeCertificate, type Certificate } from '../support/servers/certificate.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { Heard } from '../support/redis/heard.js'
import { runProgram } from '../support/run-program.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

const SECRET = 'p@ss:wörd/1'
const ENCODED = encodeURIComponent(SECRET)

const server = await startRedis({
  config: [`requirepass "${SECRET}"`, `user ann on ">${SECRET}" ~* &* +@all -flushall`],
})
await server.command('AUTH', SECRET)
afterAll(() => server.kill())

function linkOf(url: string, connectWith: ClientPackage): RedisLink {
  return linkTo(parseRedisUrl(url), connectWith)(new Heard())
}

/** Connects, runs `work` and closes. @returns the result of `work` */
async function through<Result>(link: RedisLink, work: (link: RedisLink) => Promise<Result>): Promise<Result> {
  try {
    await link.connect()
    return await work(link)
  } finally {
    await link.close()
  }
}

describe.each(clientPackages)('$name connects', ({ connectWith }) => {
  const url = (rest: string) => `redis://${rest.replace('HERE', `127.0.0.1:${server.port}`)}`
  const whoAmI = (link: RedisLink) => link.command('', ['ACL', 'WHOAMI'])
  const refused = (address: string) => {
    const failure = through(linkOf(address, connectWith), link => link.command('', ['PING']))
    return expect(failure).rejects
  }
  const unavailable = (reason: string) => ({ code: 'UNAVAILABLE', message: expect.stringContaining(reason) })

  test('as the default user, as another one, and to another database', async () => {
    expect(await through(linkOf(url(`:${ENCODED}@HERE`), connectWith), whoAmI)).toBe('default')
    expect(await through(linkOf(url(`ann:${ENCODED}@HERE/0`), connectWith), whoAmI)).toBe('ann')
    const name = Math.random().toString(36)
    await through(linkOf(url(`ann:${ENCODED}@HERE/7`), connectWith), async link => {
      await link.command('', ['SET', name, 'seven'])
      // The connection that listens is logged in, too.
      await link.subscribe('news')
    })
    await server.command('SELECT', 7)
    expect(await server.command('GET', name)).toBe('seven')
    await server.command('SELECT', 0)
  })

  test('not without a password or with a wrong one, which no error shows, to an unknown database, or where no server is', async () => {
    await refused(url('HERE')).toMatchObject(unavailable('NOAUTH'))
    await refused(url(':wrong@HERE')).toMatchObject(unavailable('WRONGPASS'))
    await refused(url(`bob:${ENCODED}@HERE`)).toMatchObject(unavailable('WRONGPASS'))
    const failure: unknown = await through(linkOf(url(`bob:${ENCODED}@HERE/1`), connectWith), whoAmI).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ engine: `redis://127.0.0.1:${server.port}/1` })
    expect(String((failure as Error).stack)).not.toContain(SECRET)
    await refused(url(`:${ENCODED}@HERE/9999`)).toMatchObject(unavailable('DB index is out of range'))
    await refused('redis://127.0.0.1:1').toMatchObject(unavailable('ECONNREFUSED'))
    await refused('redis://localhost:1').toMatchObject(unavailable('ECONNREFUSED'))
    await refused('redis://no-such-host.invalid').toMatchObject(unavailable('no-such-host.invalid'))
    await refused('redis+unix:///no/such/socket').toMatchObject(unavailable('ENOENT'))
  })

  test('at a unix socket', async () => {
    const address = `redis+unix://ann:${ENCODED}@${server.socketPath}?db=3`
    await through(linkOf(address, connectWith), async link => {
      expect(await whoAmI(link)).toBe('ann')
      expect(String(await link.command('', ['CLIENT', 'INFO']))).toContain('db=3')
    })
  })

  test('not to a server that still loads its data, and when it has', async () => {
    await using slow = await startRedis({ config: ['enable-debug-command yes'] })
    await slow.command('DEBUG', 'POPULATE', '1000')
    const slowly = 'key-load-delay 2000 loading-process-events-interval-bytes 1024'
    await slow.command('CONFIG', 'SET', ...slowly.split(' '))
    const reloading = slow.command('DEBUG', 'RELOAD')
    const link = linkOf(slow.url, connectWith)
    await expect(link.connect()).rejects.toMatchObject(unavailable('LOADING'))
    await reloading
    expect(await through(link, each => each.command('', ['DBSIZE']))).toBe(1000)
  })

  test('to a replica that refuses writes, but not to one that has lost its master', async () => {
    await using replica = await startRedis({
      config: [`replicaof 127.0.0.1 ${server.port}`, `masterauth "${SECRET}"`, 'replica-serve-stale-data no'],
    })
    await until(async () =>
      /master_link_status:up/.test(String(await replica.command('INFO', 'replication'))),
    )
    const failure = through(linkOf(replica.url, connectWith), link => link.command('', ['SET', 'k', 'v']))
    await expect(failure).rejects.toMatchObject({ code: 'READONLY' })
    await replica.command('REPLICAOF', '127.0.0.1', '1')
    await refused(replica.url).toMatchObject(unavailable('MASTERDOWN'))
  })
})

describe('over TLS', () => {
  let certificate: Certificate
  let secure: RedisServer
  beforeAll(async () => {
    certificate = makeCertificate()
    const config = [
      `tls-cert-file ${certificate.certificate}`,
      `tls-key-file ${certificate.key}`,
      'tls-auth-clients no',
    ]
    secure = await startRedis({ tls: true, config })
  })
  afterAll(async () => {
    await secure.kill()
    rmSync(certificate.folder, { recursive: true })
  })

  test.each(clientPackages)(
    '$name does not trust a certificate of an unknown authority',
    async ({ connectWith }) => {
      const failure = through(linkOf(secure.url, connectWith), link => link.command('', ['PING']))
      await expect(failure).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        message: expect.stringContaining('self-signed certificate'),
      })
    },
  )

  test('a box opens from a URL where the certificate is known', async () => {
    const program = fileURLToPath(
      new URL('../../build/test/support/redis/secure-box.process.js', import.meta.url),
    )
    const { stdout } = await runProgram(
      'env',
      [`NODE_EXTRA_CA_CERTS=${certificate.certificate}`, process.execPath, program, secure.url],
      {
        cwd: certificate.folder,
        timeLimit: 30_000,
      },
    )
    expect(stdout).toBe('locked\n')
  })

  test('existing clients keep their own trust, for messages too', async () => {
    const ca = readFileSync(certificate.certificate)
    const clients = [
      new Redis({ host: 'localhost', port: secure.port, tls: { ca } }),
      createClient({ socket: { host: 'localhost', port: secure.port, tls: true, ca } }),
    ]
    for (const client of clients) {
      client.on('error', () => {})
      if ('isOpen' in client) await client.connect()
      const heard = new Heard()
      const link = linkOver(detectClient(client))(heard)
      await link.connect()
      await link.subscribe('news')
      await link.command('', ['PUBLISH', 'news', 'secret'])
      await until(() => heard.messages.includes('news: secret'))
      await link.close()
      if ('isOpen' in client) client.destroy()
      else client.disconnect()
    }
  })
})
