import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '../../src/cli/exit-status.js'
import { Clone } from '../docs/shell-blocks.js'
import { declarationsOf, installInto, outputsOf, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let consolePackage: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-console-package-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  consolePackage = await pack(join(clone.path, 'packages/console'), folder)
}, 2 * timeLimit)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the package of the console is packed with its entries, and without loose files of the page', () => {
  const entries = ['index', 'page-kit/index'].flatMap(path =>
    ['cjs', 'd.cts', 'd.ts', 'js'].map(ending => `dist/${path}.${ending}`),
  )
  const others = consolePackage.files.filter(file => !file.startsWith('dist/chunks/'))
  expect(others.toSorted()).toEqual(['LICENSE', 'README.md', ...entries, 'package.json'].toSorted())
})

test('the package of the console declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(consolePackage), renew).toMatchFileSnapshot('console-api.txt')
})

test('the package of the console is smaller than 40 kB', () => {
  expect(consolePackage.size).toBeLessThan(40_000)
})

test('the package of the console passes publint', async () => {
  expect(await publintMessages(consolePackage)).toEqual([])
})

test('installed beside Signalbox, it serves its page and its data, for modules and for CommonJS', async () => {
  const project = join(folder, 'project')
  await installInto(project, [library.path, consolePackage.path])
  const statements = `
    const box = await open('memory:')
    const served = await serveConsole(box)
    const page = await fetch(served.url)
    const script = await fetch(new URL('page.js', served.url))
    const stores = await fetch(new URL('stores', served.url))
    console.log((await page.text()).includes('page.js'), (await script.text()).length > 10_000, stores.status)
    await served.close()
    await box.close()`
  const imports = { signalbox: 'open', 'signalbox-console': 'serveConsole' }
  const printed = 'true true 401\n'
  expect(await outputsOf(project, imports, statements)).toEqual([printed, printed])
})

test('without it, the command says what to install', async () => {
  const project = join(folder, 'without-console')
  await installInto(project, [library.path])
  const argv = ['node_modules/signalbox/dist/apps/signalbox.js', 'console', '--engine', 'redis://127.0.0.1:1']
  const { status, stderr } = spawnSync(process.execPath, argv, { cwd: project, encoding: 'utf8' })
  expect(stderr).toBe('signalbox: the console needs a package: npm install signalbox-console\n')
  expect(status).toBe(EXIT.unavailable)
})
