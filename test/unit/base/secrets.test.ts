import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { labelOf } from '../../../src/cli/work-options.js'
import { errorLine } from '../../../src/cli/failure.js'
import { placeOf } from '../../../src/cli/engine.js'
import { plainError } from '../../../src/engines/redis/clients/reply.js'
import { diagnose, open } from '../../../src/index.js'
import { withoutSecrets } from '../../../src/base/secrets.js'

const SECRET = 's3cret'
const PASSWORDS = [
  SECRET,
  `${SECRET}@more`,
  `a/${SECRET}`,
  `${SECRET}?a`,
  `a#${SECRET}`,
  `a:${SECRET}`,
  `12/${SECRET}`,
  `a ${SECRET}`,
  `%zz${SECRET}`,
  `é${SECRET}"'`,
  `${'x'.repeat(70)}${SECRET}`,
]

/** Returns texts that a user may take for a URL. @param host a host on which nothing listens */
function urlsWith(password: string, host: string): string[] {
  return [
    ...['pg', 'redis-cluster', 'mysql', 'REDIS', 'redis+tls', 'postgres', 'redis', 'rediss', 'redis+unix'],
    ...['valkey', 'valkeys', 'redis+sentinel', 'redis+cluster', 'redis-quorum', 'zookeeper', 'hazelcast'],
    ...['file', 'memory', ''],
  ]
    .flatMap(scheme => [
      `${scheme}://user:${password}@${host}/name`,
      ` ${scheme}://:${password}@${host}`,
      `${scheme}:user:${password}@${host}`,
      `${scheme}://user:${password}@${host}:port/?nothing=known`,
      `${scheme}://${host}/name?password=${password}`,
      `${scheme}://${host}/name?schema=a&sslpassword=${password}&auth=${password}`,
      // Another password could not be distinguished from a port and a path.
      `${scheme}://user:${SECRET}`,
    ])
    .filter(url => !/^ ?:?user|^(memory|file):/.test(url))
    .concat([
      `host=${host} user=user password='${password}' dbname=name`,
      `Password=${password};Server=${host}`,
      `${host},password=${password}`,
      `password = ${password}`,
      `${password}@${host}`,
    ])
}

/** Returns everything that a person or a log could see of an error. */
function seenOf(error: unknown): string {
  const all = [inspect(error, { depth: Infinity, showHidden: true }), JSON.stringify(error), errorLine(error)]
  for (let at = error; at instanceof Error; at = at.cause) all.push(at.message, String(at.stack))
  return all.join('\n')
}

/** Returns the visible text of the failures of all functions that take a URL. */
async function failuresOf(url: string): Promise<string> {
  const [opened, ...others] = await Promise.allSettled([open(url), diagnose(url), placeOf(url, false)])
  if (opened.status === 'fulfilled') {
    const { guarantees, state } = opened.value
    await opened.value.close()
    return inspect({ guarantees, state }, { depth: Infinity })
  }
  // For a valid URL, `placeOf` returns the URL itself, so only failures count.
  const failed = [opened, ...others].filter(outcome => outcome.status === 'rejected')
  return failed.map(({ reason }) => seenOf(reason)).join('\n')
}

describe('a password in a URL', () => {
  // Most of these tests wait for an address that refuses connections, so they run concurrently.
  test.concurrent.each(PASSWORDS)(
    'such as %j is in no error',
    async password => {
      const host = `127.0.0.1:${await freePort()}`
      const failures = urlsWith(password, host).map(async url => ({ url, seen: await failuresOf(url) }))
      for (const { url, seen } of await Promise.all(failures)) expect(seen, url).not.toContain(SECRET)
    },
    120_000,
  )

  test.concurrent('is in no error about a server that answers in another language', async ({
    onTestFinished,
  }) => {
    const port = await freePort()
    const server = createServer(socket =>
      socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    onTestFinished(() => void server.close())
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
    const check = async (scheme: string): Promise<void> => {
      const path = scheme === 'redis' || scheme === 'redis+cluster' ? '' : '/name'
      const url = `${scheme}://user:${SECRET}@127.0.0.1:${port}${path}`
      const error: unknown = await open(url).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(Error)
      expect(seenOf(error)).not.toContain(SECRET)
    }
    await Promise.all(['redis', 'postgres', 'zookeeper', 'redis+cluster', 'redis+sentinel'].map(check))
  })

  test('is not in the label of a command', () => {
    expect(labelOf([`psql://user:${SECRET}@host/app`])).not.toContain(SECRET)
  })

  test('is removed from error replies of Redis', () => {
    const command = { name: 'AUTH', args: ['user', SECRET] }
    const wrong = Object.assign(new Error('WRONGPASS invalid'), { name: 'ReplyError', command })
    const unknown = new Error(`ERR unknown command 'AUTH', with args beginning with: '${SECRET}' `)
    const closed = Object.assign(new Error('Connection is closed.'), { command })
    for (const error of [wrong, unknown, closed]) expect(seenOf(plainError(error))).not.toContain(SECRET)
  })
})

test.each([
  ['redis://localhost:6379/0 refuses a@b', 'redis://localhost:6379/0 refuses a@b'],
  ["can't reach redis://localhost:6379: refused", "can't reach redis://localhost:6379: refused"],
  [
    'zookeeper://a:2181,b:2181/app and rediss://[::1]:6379',
    'zookeeper://a:2181,b:2181/app and rediss://[::1]:6379',
  ],
  ['mail:john@example.com', 'mail:john@example.com'],
  ['redis://host:6379?prefix=app:', 'redis://host:6379?prefix=app:'],
  ['see redis://u:p@host:6379/0?a=1', 'see redis://***@host:6379/0?a=1'],
  ['postgres://host/db?sslpassword=a b&x=1', 'postgres://host/db?sslpassword=***&x=1'],
  ["host=db user=app password='a b' dbname=x", 'host=db user=app password=***'],
  ['localhost,password=a', 'localhost,password=***'],
])('%s is shown as %s', (text, shown) => {
  expect(withoutSecrets(text)).toBe(shown)
})
