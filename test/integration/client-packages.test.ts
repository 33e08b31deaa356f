import { afterAll, expect, test } from 'vitest'
import { runWithPackages } from '../support/installed-packages.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'

/** Prints the outcome of opening a box, and the client packages that were loaded for it. */
const PROGRAM = `
import { createRequire } from 'node:module'
import { open } from './signalbox/index.js'
// A package that is missing is not waited for.
const outcome = await open(process.argv[2], { wait: '1h' }).then(
  async box => {
    await box.mutex('key').run(() => undefined)
    // The box stays open, and lets the process end.
    return 'opened'
  },
  error => error.code + ': ' + error.message,
)
const loaded = Object.keys(createRequire(import.meta.url).cache)
// The package postgres is not in this cache, because it is loaded as an ES module.
const packages = ['ioredis', '@redis/client', 'pg'].filter(name => loaded.some(path => path.includes('/node_modules/' + name + '/')))
console.log([outcome, ...packages].join(' | '))
`

const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
afterAll(() => Promise.all([redis.kill(), postgres.kill()]))

test.each([
  ['Redis', [], 'UNAVAILABLE: Redis needs a client package: npm install redis (or ioredis)'],
  ['Redis', ['ioredis'], 'opened | ioredis'],
  ['Redis', ['redis'], 'opened | @redis/client'],
  ['Redis', ['redis', 'ioredis'], 'opened | @redis/client'],
  ['PostgreSQL', [], 'UNAVAILABLE: PostgreSQL needs a client package: npm install pg (or postgres)'],
  ['PostgreSQL', ['pg'], 'opened | pg'],
  ['PostgreSQL', ['postgres'], 'opened'],
  ['PostgreSQL', ['postgres', 'pg'], 'opened | pg'],
])('a box on %s where the installed packages are %j: %s', async (engine, packages, outcome) => {
  const { url } = engine === 'Redis' ? redis : postgres
  expect(await runWithPackages(PROGRAM, packages, url)).toBe(outcome)
})
