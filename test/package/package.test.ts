import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printedSchema } from '../../src/engines/postgres/printed-schema.js'
import { readAllBlocks, readme } from '../docs/pages.js'
import { Clone } from '../docs/shell-blocks.js'
import { runProgram, type Output } from '../support/run-program.js'
import { declarationsOf, installInto, pack, publintMessages, renew, type Tarball } from './pack.js'

interface PackageManager {
  /** Name of its package, and path of the program in the package. */
  readonly program: readonly [name: string, path: string]
  readonly add: readonly string[]
  /** Arguments that run a module of the project. Without them, Node runs the module. */
  readonly run?: readonly string[]
  /** Files of the project besides its package.json. */
  readonly files?: Readonly<Record<string, string>>
  /** The command that the error for a missing package suggests, and the place where to run it. */
  readonly hint: readonly [command: string, place: string]
}

const inNoGlobalPlace = 'enableGlobalCache: false\nenableTelemetry: false\nenableScripts: false\n'

const inDependent = ', in the package that depends on signalbox'

const packageManagers: Readonly<Record<string, PackageManager>> = {
  pnpm: {
    program: ['pnpm@10', 'pnpm/bin/pnpm.cjs'],
    add: ['add', '--ignore-scripts', '--store-dir', '.store'],
    hint: ['pnpm add', inDependent],
  },
  "Yarn's Plug'n'Play": {
    program: ['@yarnpkg/cli-dist@4', '@yarnpkg/cli-dist/bin/yarn.js'],
    add: ['add'],
    run: ['node'],
    files: { 'yarn.lock': '', '.yarnrc.yml': inNoGlobalPlace },
    hint: ['yarn add', inDependent],
  },
  "Yarn's pnpm linker": {
    program: ['@yarnpkg/cli-dist@4', '@yarnpkg/cli-dist/bin/yarn.js'],
    add: ['add'],
    files: { 'yarn.lock': '', '.yarnrc.yml': `${inNoGlobalPlace}nodeLinker: pnpm\n` },
    hint: ['yarn add', inDependent],
  },
  'Yarn 1': {
    program: ['yarn@1', 'yarn/bin/yarn.js'],
    add: ['add', '--ignore-scripts', '--non-interactive', '--cache-folder', '.cache'],
    hint: ['npm install', ''],
  },
}

const require = createRequire(import.meta.url)
const timeLimit = 120_000
const hasSqlite = isBuiltin('node:sqlite')
const root = fileURLToPath(new URL('../../', import.meta.url))
const { exports, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | object>
  version: string
}
/** The entry points that a program without the package of OpenTelemetry can import. */
const entries = Object.keys(exports)
  .filter(path => !path.endsWith('.json') && path !== './opentelemetry')
  .map(path => path.replace('.', 'signalbox'))
const everyEntry = entries.map((entry, index) => `export * as entry${index} from '${entry}'`)

/** Returns the settings for a `tsconfig.json` from the README. */
function readmeCompilerOptions(): object {
  const { code } = readAllBlocks().find(({ page, language }) => page === readme && language === 'json')!
  return (JSON.parse(code) as { compilerOptions: object }).compilerOptions
}

let folder: string
let tarball: Tarball
let clonePath: string
/** Packages that `npm pack` installed in the clone. */
let installed: readonly string[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-package-'))
  // Packing replaces the modules that run in a clone, so this packs a copy. A fresh clone has no packages and no builds.
  using clone = new Clone()
  for (const name of ['node_modules', 'dist', 'build'])
    rmSync(join(clone.path, name), { recursive: true, force: true })
  tarball = await pack(clone.path, folder)
  installed = packagesOf(clone.path)
  await runProgram('tar', ['xf', tarball.path], { cwd: folder, timeLimit })
  clonePath = clone.path
}, timeLimit)

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Returns the paths of the packages that are installed in a clone, except links to its own folders. */
function packagesOf(clone: string): string[] {
  const file = join(clone, 'node_modules/.package-lock.json')
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as {
    packages: Record<string, { link?: boolean }>
  }
  return Object.keys(packages).filter(path => path.startsWith('node_modules/') && !packages[path]!.link)
}

test('packing a fresh clone installs a compiler and a bundler, not the packages of tests or programs', () => {
  expect(installed).toEqual(expect.arrayContaining(['node_modules/typescript', 'node_modules/rolldown']))
  expect(installed.length).toBeLessThan(50)
})

test('running the programs of a fresh clone does not install the packages of tests', async () => {
  using clone = new Clone()
  rmSync(join(clone.path, 'node_modules'))
  await runProgram('node', ['scripts/setup.mjs', 'run'], { cwd: clone.path, timeLimit })
  const paths = packagesOf(clone.path)
  expect(paths).toEqual(expect.arrayContaining(['node_modules/redis', 'node_modules/hazelcast-client']))
  expect(paths.length).toBeLessThan(250)
})

describe('the tarball', () => {
  test('holds the library, its command, and the pages that belong to a package', () => {
    expect(tarball.files).toEqual(
      expect.arrayContaining([
        'package.json',
        'README.md',
        'LICENSE',
        'dist/src/index.js',
        'dist/src/index.d.ts',
        'dist/src/index.cjs',
        'dist/src/index.d.cts',
        'dist/apps/signalbox.js',
      ]),
    )
    const expected = /^(package\.json|README\.md|LICENSE|dist\/(src|apps|chunks)\/.+\.(c?js|d\.c?ts))$/
    expect(tarball.files.filter(path => !expected.test(path) || path.includes('.test.'))).toEqual([])
  })

  test('is smaller than 320 kB', () => {
    expect(tarball.size).toBeLessThan(320_000)
  })

  test('declares the public API that is committed; else renew it', async () => {
    await expect(await declarationsOf(tarball), renew).toMatchFileSnapshot('public-api.txt')
  })

  test('names no folder of the machine that built it', () => {
    const traces = tarball.files.filter(path => {
      const text = readFileSync(join(folder, 'package', path), 'utf8')
      return text.includes(root) || text.includes(clonePath)
    })
    expect(traces).toEqual([])
  })

  test('passes publint', async () => {
    expect(await publintMessages(tarball)).toEqual([])
  })

  test('has types that are right for every way to import it', async () => {
    const checker = require.resolve('@arethetypeswrong/cli/package.json')
    const program = join(dirname(checker), 'dist/index.js')
    await runProgram(process.execPath, [program, tarball.path, '--profile', 'node16'], {
      cwd: folder,
      timeLimit,
    })
  })
})

describe('installed into an empty project', () => {
  let project: string

  const write = (name: string, lines: readonly string[]) =>
    writeFileSync(join(project, name), lines.join('\n') + '\n')
  const node = (...argv: string[]): Promise<Output> =>
    runProgram(process.execPath, argv, { cwd: project, timeLimit })

  beforeAll(async () => {
    project = join(folder, 'project')
    await installInto(project, [tarball.path], 'commonjs')
  }, timeLimit)

  test('is one copy in a process that imports it and requires it', async () => {
    write('both.mjs', [
      `import { createRequire } from 'node:module'`,
      `const require = createRequire(import.meta.url)`,
      `for (const entry of ${JSON.stringify(entries)}) {`,
      `  const { default: main = null, ...imported } = await import(entry)`,
      `  const { default: other = null, ...required } = require(entry)`,
      `  const names = Object.keys(required)`,
      `  const same = names.every(name => imported[name] === required[name])`,
      `  if (!same || main !== other || Object.keys(imported).length !== names.length) console.log(entry)`,
      `}`,
      `const { open } = await import('signalbox')`,
      `const [one, other] = [await open('memory:both'), await require('signalbox').open('memory:both')]`,
      `const grant = await one.mutex('a').acquire()`,
      `console.log(await other.mutex('a').tryAcquire())`,
      `await one.close()`,
      `await other.close()`,
    ])
    expect((await node('both.mjs')).stdout).toBe('undefined\n')
  })

  test('works where require cannot load an ES module', async () => {
    write('old.cjs', [
      `const { open } = require('signalbox')`,
      `open('memory:').then(async box => {`,
      `  console.log(await box.mutex('a').run(() => 'held'))`,
      `  await box.close()`,
      `})`,
    ])
    expect((await node('--no-experimental-require-module', 'old.cjs')).stdout).toBe('held\n')
  })

  test('works from strict TypeScript, its own declarations checked', async () => {
    for (const name of ['typescript', '@types/node']) link(name)
    expect(existsSync(join(project, 'node_modules/@opentelemetry'))).toBe(false)
    write('every-entry.mts', everyEntry)
    write('every-entry.cts', everyEntry)
    write('strict.mts', [
      `import { open } from 'signalbox'`,
      `await using box = await open('memory:')`,
      `const token: bigint = await box.mutex('a', 'b').run(async grant => {`,
      `  grant.assertHeld()`,
      `  const left: number = grant.expiresIn()`,
      `  if (!(left > 0) || grant.signal.aborted) throw new Error('not held')`,
      `  return grant.token`,
      `})`,
      `await using grant = await box.mutex('a').acquire({ wait: '5s', lease: 30_000, label: 'billing' })`,
      `const busy = await box.mutex('a').tryAcquire()`,
      `console.log(grant.token > token, busy)`,
      `// @ts-expect-error: a wait is a duration`,
      `const wrong = () => box.mutex('a').acquire({ wait: true })`,
      `void wrong`,
    ])
    write('tsconfig.json', [
      JSON.stringify({
        compilerOptions: {
          ...readmeCompilerOptions(),
          strict: true,
          exactOptionalPropertyTypes: true,
          noUncheckedIndexedAccess: true,
          skipLibCheck: false,
        },
        files: ['strict.mts', 'every-entry.mts', 'every-entry.cts'],
      }),
    ])
    await node('node_modules/typescript/lib/tsc.js', '-p', '.')
    expect((await node('strict.mjs')).stdout).toBe('true undefined\n')
  })

  // The first version with `await using`, and the newest version of each major.
  test.each(['5.2', '5.9', '6', '7'])(
    'works with TypeScript %s and the tsconfig of the README',
    async version => {
      const compiler = join(folder, `typescript-${version}`)
      mkdirSync(compiler)
      writeFileSync(join(compiler, 'package.json'), '{ "private": true }')
      const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
      await runProgram('npm', ['install', ...options, `typescript@${version}`], { cwd: compiler, timeLimit })
      link('@types/node')
      const use = [
        `await using box = await open('memory:')`,
        `console.log(await box.mutex('a').run(async () => 'held'))`,
      ]
      write('esm.mts', [`import { open } from 'signalbox'`, ...use])
      write('common.cts', [`import { open } from 'signalbox'`, `void (async () => {`, ...use, `})()`])
      write('every-entry.mts', everyEntry)
      const files = ['esm.mts', 'common.cts']
      write('tsconfig.json', [
        JSON.stringify({
          compilerOptions: { ...readmeCompilerOptions(), strict: true, skipLibCheck: false },
          files: [...files, 'every-entry.mts'],
        }),
      ])
      await node(join(compiler, 'node_modules/typescript/bin/tsc'), '-p', '.')
      for (const file of files) expect((await node(file.replace('ts', 'js'))).stdout).toBe('held\n')
    },
  )

  test('has the command signalbox', async () => {
    const command = join(project, 'node_modules/.bin/signalbox')
    expect((await runProgram(command, ['--version'], { cwd: project, timeLimit })).stdout).toBe(
      `${version}\n`,
    )
  })

  test('has the SQL of the clone, so that boxes of both do not replace the schema of each other', async () => {
    const command = join(project, 'node_modules/.bin/signalbox')
    const { stdout } = await runProgram(command, ['schema', 'postgres'], { cwd: project, timeLimit })
    expect(stdout).toBe(printedSchema('signalbox'))
  })

  describe('without a driver for SQLite', () => {
    // Skipped where Node has its own driver.
    test.skipIf(hasSqlite)('the file engine names the package to install', async () => {
      expect(existsSync(join(project, 'node_modules/libsql'))).toBe(false)
      write('driver.mjs', [
        `import { open } from 'signalbox'`,
        `await open('file:./locks').catch(error => console.log(error.message))`,
      ])
      expect((await node('driver.mjs')).stdout).toContain('npm install libsql')
    })
  })

  test('its command has the fault harness, and no application that only a clone has', async () => {
    const command = join(project, 'node_modules/.bin/signalbox')
    const { stdout } = await runProgram(command, ['--help'], { cwd: project, timeLimit })
    expect(stdout).toContain('mutex [options...]')
    expect(stdout).not.toContain('trains')
    link('libsql')
    await runProgram(
      command,
      ['chaos', '--engine', 'file:./locks', '--faults', '1', '--json', 'chaos.json'],
      {
        cwd: project,
        timeLimit,
      },
    )
    const report = JSON.parse(readFileSync(join(project, 'chaos.json'), 'utf8')) as { grants: number }
    expect(report.grants).toBeGreaterThan(0)
  })

  test('works in a CommonJS project with Jest, with fake timers', async () => {
    cpSync(join(root, 'examples/testing/jest'), join(project, 'jest'), { recursive: true })
    write('jest/engines.test.js', [
      `const { mkdtempSync } = require('node:fs')`,
      `const { open } = require('signalbox')`,
      `jest.useFakeTimers()`,
      `test.each(['memory:', 'file:./locks'])('%s', async url => {`,
      `  const box = await open(url)`,
      `  await box.store('values', { group: { maxSize: 2, maxTime: '1s' } }).transaction(['key'], tx => tx.put('key', 1))`,
      `  const limiter = box.limiter('api', { limit: 1, per: 20 })`,
      `  for (let call = 0; call < 2; call++) await limiter.run(() => box.mutex('key').run(() => undefined))`,
      `  await box.close()`,
      `  expect(jest.getTimerCount()).toBe(0)`,
      `})`,
      `test.each(['redis', 'postgres', 'hazelcast'])('%s', async scheme => {`,
      `  await expect(open(scheme + '://127.0.0.1:1')).rejects.toThrow('needs a')`,
      `})`,
    ])
    link('libsql')
    const { stderr } = await node(
      join(root, 'node_modules/jest/bin/jest.js'),
      '--rootDir',
      join(project, 'jest'),
    )
    expect(stderr).toMatch(/Tests: +8 passed, 8 total/)
  })

  test('a stack trace names the methods and the lines that it comes from', async () => {
    write('trace.mjs', [
      `import { open } from 'signalbox'`,
      `const box = await open('memory:')`,
      `try { box.mutex('') } catch (error) { console.log(error.stack) }`,
      `await box.close()`,
    ])
    const place = /^ +at Box\.mutex \(.*signalbox\/dist\/(.+\.cjs):(\d+):\d+\)$/m
    const [, path, line] = place.exec((await node('trace.mjs')).stdout)!
    const lines = readFileSync(join(folder, 'package/dist', path!), 'utf8').split('\n')
    expect(lines[Number(line) - 1]).toMatch(/^\t+return .*\bmutex\(/)
  })

  /** Links a package of the checkout into the project, instead of downloading it again. */
  function link(name: string): void {
    const path = join(project, 'node_modules', name)
    if (existsSync(path)) return
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), path)
  }
})

test.each(Object.entries(packageManagers))(
  'installed by %s it works, and the error for each missing package says how to install it',
  async (name, { program, add, run, files = {}, hint: [command, place] }) => {
    const parent = join(folder, name.replace(/\W/g, '-'))
    const tool = join(parent, 'tool')
    const project = join(parent, 'project')
    for (const path of [tool, project]) {
      mkdirSync(path, { recursive: true })
      writeFileSync(join(path, 'package.json'), '{ "name": "empty", "private": true }')
    }
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
    await runProgram('npm', ['install', ...options, program[0]], { cwd: tool, timeLimit })
    const node = (...argv: readonly string[]): Promise<Output> =>
      runProgram(process.execPath, argv, { cwd: project, timeLimit })
    const manager = join(tool, 'node_modules', program[1])
    for (const [path, text] of Object.entries(files)) writeFileSync(join(project, path), text)
    const schemes = ['postgres', 'zookeeper', 'hazelcast', 'redis-quorum', 'redis']
    const urls = [
      ...(hasSqlite ? [] : ['file:./locks']),
      ...schemes.map(scheme => `${scheme}://127.0.0.1:1/0`),
    ]
    const body = [
      `const box = await open('memory:')`,
      `console.log(await box.mutex('a').run(() => 'held'))`,
      `await box.close()`,
      `for (const url of ${JSON.stringify(urls)}) await open(url).catch(error => console.log(error.message))`,
    ].join('\n')
    writeFileSync(join(project, 'module.mjs'), `import { open } from 'signalbox'\n${body}\n`)
    writeFileSync(
      join(project, 'common.cjs'),
      `const { open } = require('signalbox')\nvoid (async () => {\n${body}\n})()\n`,
    )
    const outputs = async (): Promise<string[]> => {
      const runs = ['module.mjs', 'common.cjs'].map(file => node(...(run ? [manager, ...run] : []), file))
      return (await Promise.all(runs)).map(({ stdout }) => stdout)
    }
    await node(manager, ...add, `signalbox@file:${tarball.path}`)
    const others = [
      'held',
      ...(hasSqlite
        ? []
        : [
            'The file engine needs SQLite, from Node 22.13 or later ' +
              `(this is ${process.versions.node}) or from a package: ${command} libsql${place}`,
          ]),
      `PostgreSQL needs a client package: ${command} pg (or postgres)${place}`,
      `ZooKeeper needs a package: ${command} signalbox-zookeeper${place}`,
      `Hazelcast needs a package: ${command} signalbox-hazelcast${place}`,
      `a Redis quorum needs a package: ${command} signalbox-redis-quorum${place}`,
      '',
    ].join('\n')
    const without = `${others}Redis needs a client package: ${command} redis (or ioredis)${place}\n`
    expect(await outputs()).toEqual([without, without])
    await node(manager, ...add, 'redis@5')
    for (const output of await outputs()) expect(output).toContain(`${others}can't reach redis://127.0.0.1:1`)
  },
)
