import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { runProgram } from '../support/run-program.js'
import { declarationsOf, installInto, pack, publintMessages, renew, type Tarball } from './pack.js'

const timeLimit = 120_000

let folder: string
let library: Tarball
let kit: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-conformance-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  kit = await pack(join(clone.path, 'packages/conformance'), folder)
}, 2 * timeLimit)

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

test('the conformance kit is packed with its entry and the programs that its checks start', () => {
  const paths = kit.files.filter(path => !/^dist\/chunks\//.test(path))
  expect(paths.sort()).toEqual([
    'LICENSE',
    'README.md',
    'dist/holder.process.js',
    'dist/index.d.ts',
    'dist/index.js',
    'dist/leaver.process.js',
    'dist/quiet.process.js',
    'package.json',
  ])
})

test('the conformance kit declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(kit), renew).toMatchFileSnapshot('conformance-api.txt')
})

test('the packed conformance kit is smaller than 70 kB', () => {
  expect(kit.size).toBeLessThan(70_000)
})

test('the packed conformance kit passes publint', async () => {
  expect(await publintMessages(kit)).toEqual([])
})

test('installed into an empty project, the conformance kit checks an engine, also in processes of its own', async () => {
  await installInto(folder, [library.path, kit.path])
  writeFileSync(
    join(folder, 'kit.js'),
    [
      `import { open } from 'signalbox'`,
      `import { conformance } from 'signalbox-conformance'`,
      `const box = await open('memory:')`,
      `const start = () => ({ url: 'memory:', close() {} })`,
      `const checks = conformance({ name: 'kit', guarantees: box.guarantees, weaknesses: {}, network: 'none', start })`,
      `await checks.find(({ name }) => name === 'P12 no leaks, no background errors > a process with an open box exits').run()`,
      `await box.close()`,
      `console.log(checks.length > 300)`,
    ].join('\n'),
  )
  const { stdout } = await runProgram(process.execPath, ['kit.js'], { cwd: folder, timeLimit })
  expect(stdout).toBe('true\n')
})
