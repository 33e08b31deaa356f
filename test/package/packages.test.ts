import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXIT } from '../../src/cli/exit-status.js'
import { Clone } from '../docs/shell-blocks.js'
import { runProgram } from '../support/run-program.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers } from '../support/servers/redis.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import { declarationsOf, installInto, outputsOf, pack, publintMessages, renew, type Tarball } from './pack.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const timeLimit = 120_000

/** Our other packages: the maximum size of the tarball, in bytes, and its files in `dist`. */
const packages = {
  conformance: {
    size: 70_000,
    files: ['holder.process.js', 'index.d.ts', 'index.js', 'leaver.process.js', 'quiet.process.js'],
    hasChunks: true,
  },
  console: { size: 40_000, files: [...entry('index'), ...entry('page-kit/index')], hasChunks: true },
  hazelcast: { size: 45_000, files: entry('index') },
  lockfile: { size: 14_000, files: entry('index') },
  nestjs: { size: 13_000, files: ['index.d.ts', 'index.js'] },
  'redis-quorum': { size: 16_000, files: entry('index') },
  zookeeper: { size: 55_000, files: [...entry('engine/index'), ...entry('index')], hasChunks: true },
}
type Name = keyof typeof packages
const names = Object.keys(packages) as Name[]

/** The files of an entry for ES modules and for CommonJS. */
function entry(path: string): string[] {
  return ['cjs', 'd.cts', 'd.ts', 'js'].map(ending => `${path}.${ending}`)
}

let folder: string
let library: Tarball
const packed = {} as Record<Name, Tarball>
let server: ZooKeeperServer

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))
  // Packing replaces the modules that run in a clone, so this packs a copy.
  using clone = new Clone()
  library = await pack(clone.path, folder)
  for (const name of names) packed[name] = await pack(join(clone.path, 'packages', name), folder)
  server = await startZooKeeper()
}, 5 * timeLimit)

afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(names)('the package signalbox-%s', name => {
  const { size, files, ...rest } = packages[name]

  test('is packed with its entries and the programs that it starts', () => {
    const hidden = 'hasChunks' in rest ? /^dist\/chunks\// : /^$/
    const paths = packed[name].files.filter(path => !hidden.test(path))
    const expected = ['LICENSE', 'README.md', 'package.json', ...files.map(path => `dist/${path}`)]
    expect(paths.toSorted()).toEqual(expected.toSorted())
  })

  test('declares the public API that is committed; else renew it', async () => {
    await expect(await declarationsOf(packed[name]), renew).toMatchFileSnapshot(`${name}-api.txt`)
  })

  test(`is smaller than ${size / 1000} kB`, () => {
    expect(packed[name].size).toBeLessThan(size)
  })

  test('passes publint', async () => {
    expect(await publintMessages(packed[name])).toEqual([])
  })
})

test('installed beside Signalbox, signalbox-lockfile locks a file for modules and for CommonJS', async () => {
  const project = join(folder, 'with-lockfile')
  await installInto(project, [library.path, packed.lockfile.path])
  const statements = `
    const release = await lock('package.json')
    const isLocked = await check('package.json')
    await release()
    console.log(isLocked, await check('package.json'))`
  const outputs = await outputsOf(project, { 'signalbox-lockfile': 'check, lock' }, statements)
  expect(outputs).toEqual(['true false\n', 'true false\n'])
})

test('installed beside Signalbox, signalbox-redis-quorum opens a box and diagnoses servers, for modules and for CommonJS', async () => {
  const servers = await startRedisServers(3)
  const project = join(folder, 'with-quorum')
  await installInto(project, [library.path, packed['redis-quorum'].path, 'redis'])
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

test('installed into an empty project, the conformance kit checks an engine, also in processes of its own', async () => {
  const project = join(folder, 'with-kit')
  await installInto(project, [library.path, packed.conformance.path])
  writeFileSync(
    join(project, 'kit.js'),
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
  const { stdout } = await runProgram(process.execPath, ['kit.js'], { cwd: project, timeLimit })
  expect(stdout).toBe('true\n')
})

test('installed beside Signalbox, signalbox-console serves its page and its data, for modules and for CommonJS', async () => {
  const project = join(folder, 'with-console')
  await installInto(project, [library.path, packed.console.path])
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

test('without signalbox-console, the command says what to install', async () => {
  const project = join(folder, 'without-console')
  await installInto(project, [library.path])
  const argv = ['node_modules/signalbox/dist/apps/signalbox.js', 'console', '--engine', 'redis://127.0.0.1:1']
  const { status, stderr } = spawnSync(process.execPath, argv, { cwd: project, encoding: 'utf8' })
  expect(stderr).toBe('signalbox: the console needs a package: npm install signalbox-console\n')
  expect(status).toBe(EXIT.unavailable)
})

test('installed beside Signalbox, signalbox-hazelcast opens a box and diagnoses members, for modules and for CommonJS', async () => {
  const member = await startHazelcast()
  const project = join(folder, 'with-hazelcast')
  await installInto(project, [library.path, packed.hazelcast.path])
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

test('without the client on which signalbox-hazelcast depends, the error says what is missing, and not to install the engine', async () => {
  const project = join(folder, 'without-client')
  await installInto(project, [library.path, packed.hazelcast.path])
  rmSync(join(project, 'node_modules/hazelcast-client'), { recursive: true })
  const statements = `
    await open('hazelcast://127.0.0.1:1/a', { wait: '1m' }).catch(error => console.log(error.message))`
  for (const printed of await outputsOf(project, { signalbox: 'open' }, statements)) {
    expect(printed).toMatch(
      /^can't load the installed package signalbox-hazelcast: Cannot find (module|package) 'hazelcast-client'/,
    )
  }
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

test('installed alone into an empty project, the ZooKeeper client works', async () => {
  const printed = await run(
    'alone',
    [packed.zookeeper],
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
  expect(await run('with', [library, packed.zookeeper], lines)).toBe('bigint true\n')
})

test.each([11, 12])(
  'with Nest %i, CommonJS and ES modules load one copy of the adapter and of Signalbox',
  async version => {
    const project = join(folder, `nest-${version}`)
    const nest = [`@nestjs/common@${version}`, `@nestjs/core@${version}`, 'reflect-metadata@0.2', 'rxjs@7']
    await installInto(project, [library.path, packed.nestjs.path, ...nest], 'commonjs')
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
