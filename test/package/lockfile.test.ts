import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { declarationsOf, installInto, outputsOf, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let lockfile: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-lockfile-package-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  lockfile = await pack(join(clone.path, 'packages/lockfile'), folder)
}, 2 * timeLimit)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the package for lock files is packed with its entry', () => {
  const modules = ['index.cjs', 'index.d.cts', 'index.d.ts', 'index.js'].map(name => `dist/${name}`)
  expect(lockfile.files.toSorted()).toEqual(['LICENSE', 'README.md', ...modules, 'package.json'])
})

test('the package for lock files declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(lockfile), renew).toMatchFileSnapshot('lockfile-api.txt')
})

test('the package for lock files is smaller than 14 kB', () => {
  expect(lockfile.size).toBeLessThan(14_000)
})

test('the package for lock files passes publint', async () => {
  expect(await publintMessages(lockfile)).toEqual([])
})

test('installed beside Signalbox, it locks a file for modules and for CommonJS', async () => {
  const project = join(folder, 'project')
  await installInto(project, [library.path, lockfile.path])
  const statements = `
    const release = await lock('package.json')
    const isLocked = await check('package.json')
    await release()
    console.log(isLocked, await check('package.json'))`
  const outputs = await outputsOf(project, { 'signalbox-lockfile': 'check, lock' }, statements)
  expect(outputs).toEqual(['true false\n', 'true false\n'])
})
