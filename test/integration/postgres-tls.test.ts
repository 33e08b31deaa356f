import { chmodSync, chownSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { open as openOverPostgres } from '../support/postgres/over-postgres.process.js'
import { makeCertificate, type Certificate } from '../support/servers/certificate.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { unprivileged } from '../support/servers/unprivileged.js'

let trusted: Certificate
let other: Certificate
let server: PostgresServer

beforeAll(async () => {
  trusted = makeCertificate()
  other = makeCertificate()
  // The user of the server must own its key.
  if (unprivileged)
    for (const path of [trusted.folder, trusted.certificate, trusted.key])
      chownSync(path, unprivileged.uid, unprivileged.gid)
  chmodSync(trusted.key, 0o600)
  server = await startPostgres({
    settings: {
      listen_addresses: '127.0.0.1,127.0.0.2',
      ssl: 'on',
      ssl_cert_file: trusted.certificate,
      ssl_key_file: trusted.key,
    },
  })
})
afterAll(async () => {
  await server.kill()
  for (const { folder } of [trusted, other]) rmSync(folder, { recursive: true })
})

const packages = [
  { name: 'pg', connect: (url: string): Promise<Box> => open(url) },
  { name: 'postgres', connect: async (url: string): Promise<Box> => openOverPostgres(url) },
]

describe.each(packages)('over $name', ({ name, connect }) => {
  const url = (query: string): string => `${server.url}?application_name=box-${name}&${query}`

  /** Uses the box once, and returns for each of its connections whether it is encrypted. */
  async function used(query: string): Promise<boolean[]> {
    const box = await connect(url(query))
    try {
      await box.mutex('key').run(() => undefined)
      const rows = await server.query<{ ssl: boolean }>(
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'box-${name}'`,
      )
      return [...new Set(rows.map(({ ssl }) => ssl))]
    } finally {
      await box.close()
    }
  }

  test('statements and messages are encrypted if the URL asks for it', async () => {
    expect(await used('sslmode=disable')).toEqual([false])
    expect(await used('sslmode=require')).toEqual([true])
    expect(await used(`sslmode=verify-ca&sslrootcert=${trusted.certificate}`)).toEqual([true])
    expect(await used(`sslrootcert=${trusted.certificate}`)).toEqual([true])
  })

  test('a certificate of an unknown authority is rejected', async () => {
    for (const query of ['sslmode=verify-full', `sslmode=verify-ca&sslrootcert=${other.certificate}`])
      await expect(connect(url(query))).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        message: expect.stringMatching(/self-signed certificate|unable to verify|signature/),
      })
  })

  test('only verify-full rejects a certificate for another host', async () => {
    const byAddress = (mode: string): Promise<Box> =>
      connect(url(`sslmode=${mode}&sslrootcert=${trusted.certificate}`).replace('127.0.0.1', '127.0.0.2'))
    await expect(byAddress('verify-full')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('127.0.0.2'),
    })
    await (await byAddress('verify-ca')).close()
  })

  test('an error names a missing file', async () => {
    await expect(connect(url('sslrootcert=/none/ca.pem'))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('sslrootcert takes the path of a file'),
    })
  })
})
