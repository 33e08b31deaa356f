import { afterAll, beforeAll, expect, test } from 'vitest'
import { runWithPackages } from '../support/installed-packages.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

/** Prints whether a box could be opened, and which client package was loaded for it. */
const PROGRAM = `
import { createRequire } from 'node:module'
import { open } from './signalbox/index.js'
const outcome = await open(process.argv[2]).then(
  async box => {
    await box.mutex('key').run(() => undefined)
    // The box stays open, and lets the process end.
    return 'opened'
  },
  error => error.code + ': ' + error.message,
)
const loaded = Object.keys(createRequire(import.meta.url).cache)
const isPg = loaded.some(path => path.includes('/node_modules/pg/'))
console.log(outcome + (isPg ? ' with pg' : ''))
`

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => {
  await server.kill()
})

/** Runs the program where only these packages are installed. */
function openWith(...packages: string[]): Promise<string> {
  return runWithPackages(PROGRAM, packages, server.url)
}

test('without a client package the error names what to install', async () => {
  expect(await openWith()).toBe(
    'UNAVAILABLE: PostgreSQL needs a client package: npm install pg (or postgres)',
  )
})

test('either package is enough', async () => {
  expect(await openWith('pg')).toBe('opened with pg')
  expect(await openWith('postgres')).toBe('opened')
})

test('pg is used if both are installed', async () => {
  expect(await openWith('postgres', 'pg')).toBe('opened with pg')
})
