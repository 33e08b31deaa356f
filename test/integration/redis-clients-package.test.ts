import { afterAll, beforeAll, expect, test } from 'vitest'
import { runWithPackages } from '../support/installed-packages.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

/** Prints the outcome of opening a box, and the client packages that were loaded for it. */
const PROGRAM = `
import { createRequire } from 'node:module'
import { open } from './signalbox/index.js'
// A package that is missing is not waited for.
const outcome = await open(process.argv[2], { wait: '1h' }).then(
  async box => {
    await box.mutex('key').run(() => undefined)
    await box.close()
    return 'opened'
  },
  error => error.code + ': ' + error.message,
)
const loaded = Object.keys(createRequire(import.meta.url).cache)
const packages = ['ioredis', '@redis/client'].filter(name => loaded.some(path => path.includes('/node_modules/' + name + '/')))
console.log([outcome, ...packages].join(' | '))
`

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  await server.kill()
})

/** Runs the program where only these packages are installed. */
function openWith(...packages: string[]): Promise<string> {
  return runWithPackages(PROGRAM, packages, server.url)
}

test('without a client package the error names what to install', async () => {
  expect(await openWith()).toBe('UNAVAILABLE: Redis needs a client package: npm install redis (or ioredis)')
})

test('either package is enough', async () => {
  expect(await openWith('ioredis')).toBe('opened | ioredis')
  expect(await openWith('redis')).toBe('opened | @redis/client')
})

test('node-redis is used if both are installed', async () => {
  expect(await openWith('redis', 'ioredis')).toBe('opened | @redis/client')
})
