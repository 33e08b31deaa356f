import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { runProgram } from '../support/run-program.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import { declarationsOf, installInto, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let client: Tarball
let server: ZooKeeperServer

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-zookeeper-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  client = await pack(join(clone.path, 'packages/zookeeper'), folder)
  server = await startZooKeeper()
}, 2 * timeLimit)

afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a program in an empty project with these packages, and returns its output. */
async function run(name: string, tarballs: readonly Tarball[], lines: readonly string[]): Promise<string> {
  const project = join(folder, name)
  await installInto(
    project,
    tarballs.map(({ path }) => path),
  )
  writeFileSync(join(project, 'program.js'), lines.join('\n'))
  return (await runProgram(process.execPath, ['program.js'], { cwd: project, timeLimit })).stdout
}

test('the ZooKeeper client and the engine are packed with their entries', () => {
  const paths = client.files.filter(path => !/^dist\/chunks\//.test(path))
  const entry = ['index.cjs', 'index.d.cts', 'index.d.ts', 'index.js']
  const modules = ['dist/engine', 'dist'].flatMap(place => entry.map(name => `${place}/${name}`))
  expect(paths.sort()).toEqual(['LICENSE', 'README.md', ...modules, 'package.json'])
})

test('the ZooKeeper client declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(client), renew).toMatchFileSnapshot('zookeeper-api.txt')
})

test('the packed ZooKeeper client is smaller than 55 kB', () => {
  expect(client.size).toBeLessThan(55_000)
})

test('the packed ZooKeeper client passes publint', async () => {
  expect(await publintMessages(client)).toEqual([])
})

test('installed alone into an empty project, the ZooKeeper client works', async () => {
  const printed = await run(
    'alone',
    [client],
    [
      `import { NoNodeError, ZooKeeper } from 'signalbox-zookeeper'`,
      `const zk = await ZooKeeper.connect('${server.address}')`,
      `const error = await zk.getData('/missing').catch(error => error)`,
      `console.log(error instanceof NoNodeError, error.code, zk.certainFor > 0)`,
      `await zk.close()`,
    ],
  )
  expect(printed).toBe('true NO_NODE true\n')
})

test('Signalbox without the package of the engine names it, and with it opens a box', async () => {
  const lines = [
    `import { diagnose, open } from 'signalbox'`,
    `const url = 'zookeeper://${server.address}'`,
    `const box = await open(url).catch(error => console.log(error.code, error.message))`,
    `const diagnosis = await diagnose(url).catch(error => console.log(error.code, error.message))`,
    `if (box) console.log(await box.mutex('a').run(grant => typeof grant.token), diagnosis.facts.length > 0)`,
    `await box?.close()`,
  ]
  const missing = 'UNAVAILABLE ZooKeeper needs a package: npm install signalbox-zookeeper\n'
  expect(await run('without', [library], lines)).toBe(missing + missing)
  expect(await run('with', [library, client], lines)).toBe('bigint true\n')
})
