import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { declarationsOf, installInto, outputsOf, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let engine: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-hazelcast-package-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  engine = await pack(join(clone.path, 'packages/hazelcast'), folder)
}, 2 * timeLimit)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the package of the Hazelcast engine is packed with its entry', () => {
  const modules = ['index.cjs', 'index.d.cts', 'index.d.ts', 'index.js'].map(name => `dist/${name}`)
  expect(engine.files.toSorted()).toEqual(['LICENSE', 'README.md', ...modules, 'package.json'])
})

test('the package of the Hazelcast engine declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(engine), renew).toMatchFileSnapshot('hazelcast-api.txt')
})

test('the package of the Hazelcast engine is smaller than 45 kB', () => {
  expect(engine.size).toBeLessThan(45_000)
})

test('the package of the Hazelcast engine passes publint', async () => {
  expect(await publintMessages(engine)).toEqual([])
})

test('installed beside Signalbox, it opens a box and diagnoses members, for modules and for CommonJS', async () => {
  const member = await startHazelcast()
  const project = join(folder, 'project')
  await installInto(project, [library.path, engine.path])
  const statements = `
    const url = 'hazelcast://${member.address}/${TEST_CLUSTER}'
    const box = await open(url)
    const token = await box.mutex('a').run(grant => grant.token)
    await box.close()
    const other = await open({ engine: openHazelcast(url) })
    const next = await other.mutex('a').run(grant => grant.token)
    await other.close()
    const error = await open('hazelcast://').catch(error => error)
    console.log(next > token, (await diagnose(url)).facts.length > 0, error instanceof InvalidArgumentError)`
  const imports = {
    signalbox: 'diagnose, InvalidArgumentError, open',
    'signalbox-hazelcast': 'openHazelcast',
  }
  const printed = 'true true true\n'
  expect(await outputsOf(project, imports, statements)).toEqual([printed, printed])
  await member.kill()
})

test('without the client on which it depends, the error says what is missing, and not to install the engine', async () => {
  const project = join(folder, 'without-client')
  await installInto(project, [library.path, engine.path])
  rmSync(join(project, 'node_modules/hazelcast-client'), { recursive: true })
  const statements = `
    await open('hazelcast://127.0.0.1:1/a', { wait: '1m' }).catch(error => console.log(error.message))`
  for (const printed of await outputsOf(project, { signalbox: 'open' }, statements)) {
    expect(printed).toMatch(
      /^can't load the installed package signalbox-hazelcast: Cannot find (module|package) 'hazelcast-client'/,
    )
  }
})
