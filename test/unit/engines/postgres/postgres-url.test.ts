import { expect, test } from 'vitest'
import { parsePostgresUrl } from '../../../../src/engines/postgres/postgres-url.js'

const nothing = {
  host: undefined,
  port: undefined,
  user: undefined,
  password: undefined,
  database: undefined,
  applicationName: undefined,
  tls: undefined,
}

test.each([
  ['postgres://db/app', { host: 'db', database: 'app' }],
  ['postgresql://db:6432/app', { host: 'db', port: 6432, database: 'app' }],
  ['postgres://me@db/app', { host: 'db', user: 'me', database: 'app' }],
  ['postgres://m%40e:p%2Fw@db/a%20b', { host: 'db', user: 'm@e', password: 'p/w', database: 'a b' }],
  ['postgres://[::1]:5432/app', { host: '::1', port: 5432, database: 'app' }],
  ['postgres://me@/app?host=/run/postgresql', { host: '/run/postgresql', user: 'me', database: 'app' }],
  ['postgres://%2Frun%2Fpostgresql/app', { host: '/run/postgresql', database: 'app' }],
  ['postgres://db/?application_name=trains', { host: 'db', applicationName: 'trains' }],
  ['postgres:///', {}],
])('%s', (url, address) => {
  expect(parsePostgresUrl(url).address).toEqual({ ...nothing, ...address })
})

test('the name has neither user nor password, and the schema unless it is the usual one', () => {
  expect(parsePostgresUrl('postgres://me:secret@db:6432/app?schema=signalbox')).toMatchObject({
    name: 'postgres://db:6432/app',
    schema: 'signalbox',
  })
  expect(parsePostgresUrl('postgresql://db/app?schema=locks')).toMatchObject({
    name: 'postgres://db/app?schema=locks',
    schema: 'locks',
  })
})

test.each([
  ['sslmode=disable', undefined],
  ['sslmode=require', { checks: 'nothing' }],
  ['sslmode=require&sslrootcert=/ca', { checks: 'certificate', rootCertificate: '/ca' }],
  ['sslmode=verify-ca&sslrootcert=/ca', { checks: 'certificate', rootCertificate: '/ca' }],
  ['sslmode=verify-full', { checks: 'certificate and host' }],
  ['sslcert=/c&sslkey=/k', { checks: 'certificate and host', certificate: '/c', key: '/k' }],
])('TLS as libpq has it: %s', (query, tls) => {
  const files = { rootCertificate: undefined, certificate: undefined, key: undefined }
  expect(parsePostgresUrl(`postgres://db/app?${query}`).address.tls).toEqual(tls && { ...files, ...tls })
})

test.each([
  ['mysql://db/app', 'a PostgreSQL URL looks like'],
  ['postgres://db', 'a PostgreSQL URL looks like'],
  ['postgres://one,other/app', 'a PostgreSQL URL looks like'],
  ['postgres://db:port/app', 'a PostgreSQL URL looks like'],
  ['postgres://me:100%secret@db/app', 'has a % that'],
  ['postgres://me:secret@db/app?shcema=x', 'no option "shcema"; known are schema, host'],
  ['postgres://me:secret@db/app?schema=A-B', 'schema takes a name'],
  ['postgres://me:secret@db/app?schema=a&schema=b', 'twice'],
  ['postgres://me:secret@db/app?sslmode=prefer', 'sslmode takes disable, require, verify-ca, verify-full'],
])('%s is refused', (url, reason) => {
  expect(() => parsePostgresUrl(url)).toThrow(reason)
  try {
    parsePostgresUrl(url)
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect((error as Error).message).not.toContain('secret')
  }
})
