import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../support/run-program.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Says what opening a box has come to, and which client package was loaded for it. */
const PROGRAM = `
import { createRequire } from 'node:module'
import { open } from './signalbox/index.js'
const outcome = await open(process.argv[2]).then(
  async box => {
    await box.mutex('key').run(() => undefined)
    // The box stays open: it does not keep the process alive.
    return 'opened'
  },
  error => error.code + ': ' + error.message,
)
const loaded = Object.keys(createRequire(import.meta.url).cache)
const isPg = loaded.some(path => path.includes('/node_modules/pg/'))
console.log(outcome + (isPg ? ' with pg' : ''))
`

let server: PostgresServer
const folders: string[] = []

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => {
  await server.kill()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** Runs the program where only these packages are installed. */
async function openWith(...packages: string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))
  folders.push(folder)
  cpSync(join(root, 'dist/src'), join(folder, 'signalbox'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'program.js'), PROGRAM)
  mkdirSync(join(folder, 'node_modules'))
  for (const name of packages)
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  const { stdout } = await runProgram(process.execPath, ['program.js', server.url], {
    cwd: folder,
    timeLimit: 30_000,
  })
  return stdout.trim()
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
