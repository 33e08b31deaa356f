import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { runProgram } from '../support/run-program.js'
import { declarationsOf, installInto, pack, publintMessages, renew, type Tarball } from './pack.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const timeLimit = 120_000

let folder: string
let library: Tarball
let adapter: Tarball

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-nestjs-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  adapter = await pack(join(clone.path, 'packages/nestjs'), folder)
}, 2 * timeLimit)

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

test('the adapter to NestJS is packed with its entry', () => {
  const paths = ['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/index.js', 'package.json']
  expect([...adapter.files].sort()).toEqual(paths)
})

test('the adapter to NestJS declares the public API that is committed; else renew it', async () => {
  await expect(await declarationsOf(adapter), renew).toMatchFileSnapshot('nestjs-api.txt')
})

test('the packed adapter to NestJS is smaller than 13 kB', () => {
  expect(adapter.size).toBeLessThan(13_000)
})

test('the packed adapter to NestJS passes publint', async () => {
  expect(await publintMessages(adapter)).toEqual([])
})

test.each([11, 12])(
  'with Nest %i, CommonJS and ES modules load one copy of the adapter and of Signalbox',
  async version => {
    const project = join(folder, String(version))
    const nest = [`@nestjs/common@${version}`, `@nestjs/core@${version}`, 'reflect-metadata@0.2', 'rxjs@7']
    await installInto(project, [library.path, adapter.path, ...nest], 'commonjs')
    writeFileSync(
      join(project, 'module.cjs'),
      [
        `const { Module } = require('@nestjs/common')`,
        `const { Locked, SignalboxModule } = require('signalbox-nestjs')`,
        `class Doors { async enter(then) { return then() } }`,
        `const descriptor = Object.getOwnPropertyDescriptor(Doors.prototype, 'enter')`,
        `Locked('door', { wait: 0 })(Doors.prototype, 'enter', descriptor)`,
        `Object.defineProperty(Doors.prototype, 'enter', descriptor)`,
        `class ApplicationModule {}`,
        `const options = { source: 'memory:', detectDeadlocks: false }`,
        `Module({ imports: [SignalboxModule.forRoot(options)], providers: [Doors] })(ApplicationModule)`,
        `exports.Doors = Doors`,
        `exports.ApplicationModule = ApplicationModule`,
      ].join('\n'),
    )
    writeFileSync(
      join(project, 'main.mjs'),
      [
        `import { createRequire } from 'node:module'`,
        `import { NestFactory } from '@nestjs/core'`,
        `import { BusyError } from 'signalbox'`,
        `import { BOX, SignalboxModule } from 'signalbox-nestjs'`,
        `const require = createRequire(import.meta.url)`,
        `const { ApplicationModule, Doors } = require('./module.cjs')`,
        `const application = await NestFactory.createApplicationContext(ApplicationModule, { logger: false })`,
        `const doors = application.get(Doors)`,
        `const again = () => doors.enter(() => 'twice').catch(error => error instanceof BusyError)`,
        `console.log(await doors.enter(again), require('signalbox-nestjs').SignalboxModule === SignalboxModule)`,
        `console.log(application.get(BOX).state.status)`,
        `await application.close()`,
      ].join('\n'),
    )
    const { stdout, stderr } = await runProgram(process.execPath, ['main.mjs'], { cwd: project, timeLimit })
    expect([stdout, stderr]).toEqual(['true true\nready\n', ''])
    writeFileSync(
      join(project, 'typed.mts'),
      [
        `import { Module } from '@nestjs/common'`,
        `import { Locked, SignalboxModule } from 'signalbox-nestjs'`,
        `class Doors { @Locked((id: string) => id, { wait: 0 }) async enter(id: string) { return id } }`,
        `@Module({ imports: [SignalboxModule.forRoot({ source: 'memory:' })], providers: [Doors] })`,
        `export class ApplicationModule {}`,
      ].join('\n'),
    )
    const settings =
      '--noEmit --strict --target es2022 --module nodenext --skipLibCheck --experimentalDecorators'.split(' ')
    const argv = [join(root, 'node_modules/typescript/lib/tsc.js'), ...settings, 'typed.mts']
    await runProgram(process.execPath, argv, { cwd: project, timeLimit })
  },
)
