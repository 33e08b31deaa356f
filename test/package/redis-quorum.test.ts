import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers } from '../support/servers/redis.js'
import { declarationsOf, installInto, outputsOf, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let engine: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-quorum-package-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  engine = await pack(join(clone.path, 'packages/redis-quorum'), folder)
}, 2 * timeLimit)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the package of the quorum engine is packed with its entry', () => {
  const modules = ['index.cjs', 'index.d.cts', 'index.d.ts', 'index.js'].map(name => `dist/${name}`)
  expect(engine.files.toSorted()).toEqual(['LICENSE', 'README.md', ...modules, 'package.json'])
})

test('the package of the quorum engine declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(engine), renew).toMatchFileSnapshot('redis-quorum-api.txt')
})

test('the package of the quorum engine is smaller than 16 kB', () => {
  expect(engine.size).toBeLessThan(16_000)
})

test('the package of the quorum engine passes publint', async () => {
  expect(await publintMessages(engine)).toEqual([])
})

test('installed beside Signalbox, it opens a box and diagnoses servers, for modules and for CommonJS', async () => {
  const servers = await startRedisServers(3)
  const project = join(folder, 'project')
  await installInto(project, [library.path, engine.path, 'redis'])
  const url = quorumUrl(servers)
  const statements = `
    const box = await open('${url}')
    const token = await box.mutex('a').run(grant => grant.token)
    await box.close()
    const other = await open({ engine: await openRedisQuorum('${url}') })
    const next = await other.mutex('a').run(grant => grant.token)
    await other.close()
    const error = await open('redis-quorum://a,b').catch(error => error)
    console.log(next > token, (await diagnose('${url}')).facts.length >= 3, error instanceof InvalidArgumentError)`
  const imports = {
    signalbox: 'diagnose, InvalidArgumentError, open',
    'signalbox-redis-quorum': 'openRedisQuorum',
  }
  const printed = 'true true true\n'
  expect(await outputsOf(project, imports, statements)).toEqual([printed, printed])
  await Promise.all(servers.map(server => server.kill()))
})
