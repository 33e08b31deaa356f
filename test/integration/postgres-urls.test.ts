import { chownSync, chmodSync, rmSync } from 'node:fs'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { until } from '../../packages/conformance/src/time.js'
import { open, type Box } from '../../src/index.js'
import { failure } from '../support/failure.js'
import { open as openOverPostgres } from '../support/postgres/over-postgres.process.js'
import { makeCertificate } from '../support/servers/certificate.js'
import { startPostgres, startStandby, type PostgresServer } from '../support/servers/postgres.js'
import { silentPort } from '../support/servers/silent-port.js'
import { unprivileged } from '../support/servers/unprivileged.js'

const [certificate, other] = [makeCertificate(), makeCertificate()]
// The user of the server must own its key.
if (unprivileged)
  for (const path of [certificate.folder, certificate.certificate, certificate.key])
    chownSync(path, unprivileged.uid, unprivileged.gid)
chmodSync(certificate.key, 0o600)
const plain = await startPostgres()
const secure = await startPostgres({
  settings: { listen_addresses: '127.0.0.1,127.0.0.2', ...encrypting() },
})
afterAll(async () => {
  await Promise.all([plain.kill(), secure.kill()])
  for (const { folder } of [certificate, other]) rmSync(folder, { recursive: true })
})

/** Returns the settings of a server that supports encryption. */
function encrypting(): Record<string, string> {
  return { ssl: 'on', ssl_cert_file: certificate.certificate, ssl_key_file: certificate.key }
}

/** Returns the messages of an error and of all its causes. */
function everything(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const more = error instanceof AggregateError ? error.errors : []
  const own = Object.values(error).map(value =>
    value instanceof Error ? everything(value) : JSON.stringify(value),
  )
  return [String(error), error.stack, ...own, everything(error.cause), ...more.map(everything)].join('\n')
}

const packages = [
  { name: 'pg', connect: (url: string): Promise<Box> => open(url) },
  { name: 'postgres', connect: async (url: string): Promise<Box> => openOverPostgres(url) },
]

describe.each(packages)('over $name', ({ name, connect }) => {
  /** Uses the box once, and returns whether its connections are encrypted. */
  async function isEncrypted(server: PostgresServer, query: string): Promise<boolean[]> {
    const box = await connect(`${server.url}?application_name=url-${name}&${query}`)
    try {
      await box.mutex('key').run(() => undefined)
      const rows = await server.query<{ ssl: boolean }>(
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'url-${name}'`,
      )
      return [...new Set(rows.map(({ ssl }) => ssl))]
    } finally {
      await box.close()
    }
  }

  test('statements and messages are encrypted as the URL asks for it', async () => {
    for (const mode of ['prefer', 'allow']) {
      expect(await isEncrypted(secure, `sslmode=${mode}`)).toEqual([true])
      expect(await isEncrypted(plain, `sslmode=${mode}`)).toEqual([false])
    }
    expect(await isEncrypted(secure, 'sslmode=disable')).toEqual([false])
    expect(await isEncrypted(secure, 'sslmode=require')).toEqual([true])
    await expect(connect(`${plain.url}?sslmode=require`)).rejects.toThrow('could not open a box on postgres:')
    const trusting = `sslrootcert=${certificate.certificate}`
    expect(await isEncrypted(secure, `sslmode=verify-ca&${trusting}`)).toEqual([true])
    expect(await isEncrypted(secure, trusting)).toEqual([true])
  })

  test('a certificate of an unknown authority is rejected', async () => {
    for (const query of ['sslmode=verify-full', `sslmode=verify-ca&sslrootcert=${other.certificate}`])
      await expect(connect(`${secure.url}?${query}`)).rejects.toMatchObject(
        failure('UNAVAILABLE', /self-signed certificate|unable to verify|signature/),
      )
  })

  test('only verify-full rejects a certificate for another host', async () => {
    const byAddress = (mode: string): Promise<Box> => {
      const url = `${secure.url}?sslmode=${mode}&sslrootcert=${certificate.certificate}`
      return connect(url.replace('127.0.0.1', '127.0.0.2'))
    }
    await expect(byAddress('verify-full')).rejects.toMatchObject(failure('UNAVAILABLE', '127.0.0.2'))
    await (await byAddress('verify-ca')).close()
  })

  test('an error names a missing file', async () => {
    await expect(connect(`${secure.url}?sslrootcert=/none/ca.pem`)).rejects.toMatchObject(
      failure('INVALID_ARGUMENT', 'sslrootcert takes the path of a file'),
    )
  })

  test('channel_binding=require verifies the certificate', async () => {
    const query = 'sslmode=require&channel_binding=require'
    expect(await isEncrypted(secure, `${query}&sslrootcert=${certificate.certificate}`)).toEqual([true])
    await expect(connect(`${secure.url}?${query}`)).rejects.toThrow('self-signed certificate')
  })

  test('options reach the server', async () => {
    const options = encodeURIComponent(`-c application_name=options-${name}`)
    await using box = await connect(`${plain.url}?options=${options}&application_name=options-${name}`)
    await box.ping()
    await expect(connect(`${plain.url}?options=-c%20nothing=1`)).rejects.toThrow('nothing')
  })

  test('of several servers, the first reachable one is used', async () => {
    const { port } = plain.address
    const hosts = `127.0.0.1:${await freePort()},127.0.0.1:${await silentPort()},127.0.0.1:${port}`
    await using box = await connect(`postgres://tester@${hosts}/postgres?connect_timeout=1`)
    await box.mutex('key').run(() => undefined)
  })

  test('if none of several servers is reachable, the error names the failures', async () => {
    const ports = [await freePort(), await freePort()]
    const url = `postgres://me:secret@127.0.0.1:${ports[0]!},127.0.0.1:${ports[1]!}/app`
    const error: unknown = await connect(url).catch((reason: unknown) => reason)
    expect(error).toMatchObject(failure('UNAVAILABLE', 'ECONNREFUSED'))
    expect(everything(error)).not.toContain('secret')
  })

  test('connect_timeout limits the wait for a silent server', async () => {
    const begun = performance.now()
    const url = `postgres://me:secret@127.0.0.1:${await silentPort()}/app?connect_timeout=1`
    const error: unknown = await connect(url).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UNAVAILABLE' })
    expect(performance.now() - begun).toBeLessThan(3000)
    expect(everything(error)).not.toContain('secret')
  })

  test('an invalid port is rejected at once', async () => {
    const refused = failure('INVALID_ARGUMENT', '1 to 65535')
    await expect(async () => connect('postgres://127.0.0.1:99999/app')).rejects.toMatchObject(refused)
    vi.stubEnv('PGPORT', '99999')
    await expect(async () => connect('postgres://127.0.0.1/app')).rejects.toMatchObject(refused)
    vi.stubEnv('PGPORT', '')
    vi.stubEnv('PGHOST', '')
    await expect(connect('postgres://nobody@/app?connect_timeout=1')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
  })

  test.each(['', '&sslmode=prefer'])(
    'of a primary and its standby the box uses the primary, also after a failover%s',
    async more => {
      const settings = more ? encrypting() : {}
      const primary = await startPostgres({ settings })
      const standby = await startStandby(primary.address.port, { settings })
      try {
        const hosts = [standby, primary].map(({ address }) => `127.0.0.1:${address.port}`).join()
        await using box = await connect(
          `postgres://tester@${hosts}/postgres?target_session_attrs=read-write${more}`,
        )
        await box.store('s').put('key', 'before')
        await primary.copied()
        await primary.kill()
        await standby.promote()
        await until('the box works again', () =>
          box
            .store('s')
            .put('key', 'after')
            .then(
              () => true,
              () => false,
            ),
        )
        expect((await box.store('s').get('key'))?.value).toBe('after')
      } finally {
        await Promise.all([primary.kill(), standby.kill()])
      }
    },
  )
})
