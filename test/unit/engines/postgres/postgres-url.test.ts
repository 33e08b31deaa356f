import { expect, test } from 'vitest'
import { parsePostgresUrl } from '../../../../src/engines/postgres/postgres-url.js'

const nothing = {
  servers: [{ host: undefined, port: undefined }],
  user: undefined,
  password: undefined,
  database: undefined,
  applicationName: undefined,
  options: undefined,
  connectTimeout: undefined,
  tls: undefined,
}

/** Returns the options for one server. */
const at = (host: string | undefined, port?: number): object => ({ servers: [{ host, port }] })

test.each([
  ['postgresql://db:6432/app', { ...at('db', 6432), database: 'app' }],
  ['postgres://m%40e:p%2Fw@db/a%20b', { ...at('db'), user: 'm@e', password: 'p/w', database: 'a b' }],
  ['postgres://[::1]:5432/app', { ...at('::1', 5432), database: 'app' }],
  ['postgres://me@/app?host=/run/postgresql', { ...at('/run/postgresql'), user: 'me', database: 'app' }],
  ['postgres://%2Frun%2Fpostgresql/app', { ...at('/run/postgresql'), database: 'app' }],
  ['postgres://db/?application_name=trains', { ...at('db'), applicationName: 'trains' }],
  ['postgres:///', {}],
  ['postgres://db', at('db')],
  ['postgres://db?port=6432', at('db', 6432)],
  [
    'postgres:///?user=me&password=p/w&dbname=app&host=db&port=1',
    {
      ...at('db', 1),
      user: 'me',
      password: 'p/w',
      database: 'app',
    },
  ],
  ['postgres://db/app?connect_timeout=3', { ...at('db'), database: 'app', connectTimeout: 3000 }],
  ['postgres://db/app?connect_timeout=0', { ...at('db'), database: 'app' }],
  [
    'postgres://db/app?options=-c%20work_mem%3D8MB',
    { ...at('db'), database: 'app', options: '-c work_mem=8MB' },
  ],
  ['postgres://db/app?pgbouncer=true&connection_limit=1&pool_timeout=5', { ...at('db'), database: 'app' }],
  [
    'postgres://db/app?target_session_attrs=read-write&channel_binding=prefer',
    { ...at('db'), database: 'app' },
  ],
])('%s', (url, address) => {
  expect(parsePostgresUrl(url).address).toEqual({ ...nothing, ...address })
})

test.each([
  ['postgres://a,b/app', [['a'], ['b']]],
  [
    'postgres://a:1,b:2/app',
    [
      ['a', 1],
      ['b', 2],
    ],
  ],
  [
    'postgres:///app?host=a,b&port=1,2',
    [
      ['a', 1],
      ['b', 2],
    ],
  ],
  ['postgres://a,b/app?port=1,', [['a', 1], ['b']]],
])('several servers: %s', (url, servers) => {
  expect(parsePostgresUrl(url).address.servers).toEqual(servers.map(([host, port]) => ({ host, port })))
})

test('the name has neither user nor password, and has the schema unless it is the default', () => {
  expect(parsePostgresUrl('postgres://me:secret@db:6432/app?signalbox_schema=signalbox')).toMatchObject({
    name: 'postgres://db:6432/app',
    schema: 'signalbox',
  })
  expect(parsePostgresUrl('postgresql://db/app?signalbox_schema=locks')).toMatchObject({
    name: 'postgres://db/app?signalbox_schema=locks',
    schema: 'locks',
  })
  expect(parsePostgresUrl('postgresql://a:1,[::1]:2?password=secret&dbname=app').name).toBe(
    'postgres://a:1,[::1]:2/app',
  )
})

test('the schema of Prisma is not the one of Signalbox', () => {
  expect(parsePostgresUrl('postgres://db/app?schema=public').schema).toBe('signalbox')
  expect(parsePostgresUrl('postgres://db/app?schema=app&signalbox_schema=locks').schema).toBe('locks')
})

const files = { rootCertificate: undefined, certificate: undefined, key: undefined, isOptional: false }

test.each([
  ['sslmode=disable', undefined],
  ['sslmode=prefer', { checks: 'nothing', isOptional: true }],
  ['sslmode=require', { checks: 'nothing' }],
  ['sslmode=require&sslrootcert=/ca', { checks: 'certificate', rootCertificate: '/ca' }],
  ['sslmode=verify-ca&sslrootcert=/ca', { checks: 'certificate', rootCertificate: '/ca' }],
  ['sslmode=verify-full', { checks: 'certificate and host' }],
  ['sslmode=verify-full&sslrootcert=system', { checks: 'certificate and host' }],
  ['sslcert=/c&sslkey=/k', { checks: 'certificate and host', certificate: '/c', key: '/k' }],
  ['sslmode=require&channel_binding=require', { checks: 'certificate and host' }],
])('TLS as in libpq: %s', (query, tls) => {
  expect(parsePostgresUrl(`postgres://db/app?${query}`).address.tls).toEqual(tls && { ...files, ...tls })
})

test.each([
  ['mysql://db/app', 'a PostgreSQL URL looks like'],
  ['postgres://me:secret@db:port/app', 'names its servers as host:5432'],
  ['postgres://me:secret@db:99999/app', 'port must be a number from 1 to 65535, not "99999"'],
  ['postgres://me:secret@a,b,c/app?port=1,2', 'one port for all its hosts, or one for each'],
  ['postgres://me:100%secret@db/app', 'must be percent-encoded'],
  ['postgres://me:secret@db/app?shcema=x', 'unknown option "shcema"; it must be one of signalbox_schema'],
  ['postgres://me:secret@db/app?passwrd=secret', 'unknown option "passwrd"'],
  ['postgres://me:secret@db/app?signalbox_schema=A-B', 'signalbox_schema must be a name'],
  ['postgres://me:secret@db/app?signalbox_schema=pg_locks', 'must not begin with pg_'],
  ['postgres://me:secret@db/app?signalbox_schema=information_schema', 'must not be information_schema'],
  ['postgres://me:secret@db/app?schema=locks', 'name the schema of Signalbox with signalbox_schema'],
  ['postgres://me:secret@db/app?sslmode=a&sslmode=b', 'twice'],
  [
    'postgres://me:secret@db/app?sslmode=always',
    'sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full',
  ],
  ['postgres://me:secret@db/app?sslmode=toString', 'sslmode must be one of disable'],
  ['postgres://me:secret@db/app?sslmode=require&sslrootcert=system', 'needs sslmode=verify-full'],
  ['postgres://me:secret@db/app?sslmode=prefer&channel_binding=require', 'needs TLS, and sslmode is prefer'],
  [
    'postgres://me:secret@db/app?sslmode=disable&channel_binding=require',
    'needs TLS, and sslmode is disable',
  ],
  ['postgres://me:secret@db/app?connect_timeout=5s', 'connect_timeout must be a number of seconds'],
  ['postgres://me:secret@db/app?target_session_attrs=standby', 'target_session_attrs must not be "standby"'],
  ['postgres://me:secret@db/app?client_encoding=latin1', 'client_encoding must not be "latin1"'],
  ['postgres://me:secret@db/app?gssencmode=require', 'gssencmode must not be "require"'],
])('%s is rejected', (url, reason) => {
  expect(() => parsePostgresUrl(url)).toThrow(reason)
  try {
    parsePostgresUrl(url)
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect((error as Error).message).not.toContain('secret')
  }
})
