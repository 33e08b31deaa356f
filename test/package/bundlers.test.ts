import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Clone } from '../docs/shell-blocks.js'
import { runtime } from '../interop/runtime.js'
import { runProgram } from '../support/run-program.js'
import { startRedisServers, type RedisServer } from '../support/servers/redis.js'
import { pack } from './pack.js'

const timeLimit = 120_000
const packages = ['redis@5', 'esbuild@0.28', 'webpack@5']

let folder: string
let redis: RedisServer

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-bundlers-'))
  ;[redis] = (await startRedisServers(1)) as [RedisServer]
  using clone = new Clone()
  const { path } = await pack(clone.path, folder)
  write('package.json', '{ "name": "bundled", "private": true }')
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await runProgram('npm', ['install', ...options, path, ...packages], { cwd: folder, timeLimit })
  write(
    'program.mjs',
    `import { open } from 'signalbox'
    async function main() {
      for (const url of process.argv.slice(2)) {
        try {
          const box = await open(url)
          console.log(await box.mutex('a').run(() => 'held'))
          await box.close()
        } catch (error) {
          console.log(error.message)
        }
      }
    }
    void main()`,
  )
  write(
    'run-webpack.mjs',
    `import webpack from 'webpack'
    const [format, filename] = process.argv.slice(2)
    const output = { path: import.meta.dirname ?? process.cwd(), filename }
    const asModule = {
      output: { ...output, module: true, library: { type: 'module' }, chunkFormat: 'module' },
      experiments: { outputModule: true },
    }
    const optimization = { minimize: false }
    const options = { entry: './program.mjs', target: 'node', optimization, ...(format === 'esm' ? asModule : { output }) }
    webpack(options, (error, stats) => {
      const failure = error ?? (stats.hasErrors() && stats.toString({ all: false, errors: true }))
      if (failure) throw new Error(failure)
    })`,
  )
}, 2 * timeLimit)

afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
}, timeLimit)

/** Code that a CommonJS package needs if esbuild bundles it into an ES module. */
const banner =
  "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

function esbuild(format: string, file: string, ...more: readonly string[]): string[] {
  const options = ['--bundle', '--platform=node', '--log-level=warning']
  const program = 'node_modules/esbuild/bin/esbuild'
  return [program, 'program.mjs', ...options, `--format=${format}`, `--outfile=${file}`, ...more]
}

/** Bundles the program without excluding packages. Returns the output of the bundler and of the program. */
async function bundled(argv: readonly string[], file: string, urls: readonly string[]): Promise<string> {
  const bundling = await runProgram(process.execPath, argv, { cwd: folder, timeLimit })
  // Uses a Node with its own SQLite, because bundlers do not include binaries.
  const node = runtime('Node 24', file)
  const running = await runProgram(node.program, [...node.argv, ...urls], { cwd: folder, timeLimit })
  return bundling.stderr + bundling.stdout + running.stdout
}

test.each([
  ['esbuild', 'an ES module', esbuild('esm', 'esbuild.mjs', banner), 'esbuild.mjs'],
  ['esbuild', 'CommonJS', esbuild('cjs', 'esbuild.cjs'), 'esbuild.cjs'],
  ['webpack', 'an ES module', ['run-webpack.mjs', 'esm', 'webpack.mjs'], 'webpack.mjs'],
  ['webpack', 'CommonJS', ['run-webpack.mjs', 'cjs', 'webpack.cjs'], 'webpack.cjs'],
])(
  'bundled by %s into %s, memory, files and Redis work, and other engines name their package',
  async (_, __, argv, file) => {
    const missing = ['postgres', 'zookeeper', 'hazelcast', 'redis-quorum'].map(
      scheme => `${scheme}://127.0.0.1:1/a`,
    )
    expect(await bundled(argv, file, ['memory:', 'file:./locks', redis.url, ...missing])).toBe(
      [
        'held',
        'held',
        'held',
        'PostgreSQL needs a client package: npm install pg (or postgres)',
        'ZooKeeper needs a package: npm install signalbox-zookeeper',
        'Hazelcast needs a package: npm install signalbox-hazelcast',
        'a Redis quorum needs a package: npm install signalbox-redis-quorum',
        '',
      ].join('\n'),
    )
  },
)

test('in an ES module by esbuild without require, a CommonJS package that was bundled is not called missing', async () => {
  const file = 'without-require.mjs'
  const missing = 'postgres://127.0.0.1:1/a'
  expect(await bundled(esbuild('esm', file), file, ['memory:', redis.url, missing])).toBe(
    [
      'held',
      `can't load the installed package redis: Dynamic require of "node:crypto" is not supported`,
      'PostgreSQL needs a client package: npm install pg (or postgres)',
      '',
    ].join('\n'),
  )
})

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}
